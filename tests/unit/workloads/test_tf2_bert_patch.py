# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The patch of run_pretraining.py: found by its text, applied once, refused where it does not fit."""

import json

import pytest
from role_files import load
from run_module import call_module

tf2_bert_patch = load("tf2_bert", "tf2_bert_patch")
UnknownFileError = tf2_bert_patch.UnknownFileError

# The end of the function that makes the model and its optimizer, the same in all versions.
MODEL = """\
    return pretrain_model, core_model

"""
PATCHED_MODEL = """\
    pretrain_model.optimizer._create_all_weights(pretrain_model.trainable_variables)
    return pretrain_model, core_model

"""
# The lines that DLPerf's instructions name, with the indentation of the genuine file.
MAIN_23 = """\
def main(_):
  if not FLAGS.model_dir:
    FLAGS.model_dir = 'bert20/'
  strategy = distribution_utils.get_distribution_strategy(
      distribution_strategy=FLAGS.distribution_strategy,
      num_gpus=FLAGS.num_gpus,
      tpu_address=FLAGS.tpu)
  if strategy:
    print('***** Number of cores used : ', strategy.num_replicas_in_sync)
"""
PATCHED_MAIN_23 = """\
def main(_):
  if not FLAGS.model_dir:
    FLAGS.model_dir = 'bert20/'
  from official.utils.misc import keras_utils
  keras_utils.set_session_config(enable_xla=FLAGS.enable_xla)
  distribution_utils.configure_cluster(
      FLAGS.worker_hosts,
      FLAGS.task_index)
  strategy = distribution_utils.get_distribution_strategy(
      distribution_strategy=FLAGS.distribution_strategy,
      all_reduce_alg=FLAGS.all_reduce_alg,
      num_gpus=FLAGS.num_gpus,
      tpu_address=FLAGS.tpu)
  if strategy:
    print('***** Number of cores used : ', strategy.num_replicas_in_sync)
"""
# The same lines in 2.15.0, 2.19.1 and 2.20.0.
MAIN_215 = """\
def main(_):
  # Configures cluster spec for multi-worker distribution strategy.
  if FLAGS.num_gpus > 0:
    _ = distribute_utils.configure_cluster(FLAGS.worker_hosts, FLAGS.task_index)
  strategy = distribute_utils.get_distribution_strategy(
      distribution_strategy=FLAGS.distribution_strategy,
      num_gpus=FLAGS.num_gpus,
      all_reduce_alg=FLAGS.all_reduce_alg,
      tpu_address=FLAGS.tpu)
"""
PATCHED_MAIN_215 = """\
def main(_):
  # Configures cluster spec for multi-worker distribution strategy.
  from official.utils.misc import keras_utils
  keras_utils.set_session_config(enable_xla=FLAGS.enable_xla)
  _ = distribute_utils.configure_cluster(FLAGS.worker_hosts, FLAGS.task_index)
  strategy = distribute_utils.get_distribution_strategy(
      distribution_strategy=FLAGS.distribution_strategy,
      num_gpus=FLAGS.num_gpus,
      all_reduce_alg=FLAGS.all_reduce_alg,
      tpu_address=FLAGS.tpu)
"""
GENUINE_23, PATCHED_23 = MODEL + MAIN_23, PATCHED_MODEL + PATCHED_MAIN_23
GENUINE_215, PATCHED_215 = MODEL + MAIN_215, PATCHED_MODEL + PATCHED_MAIN_215


def patch(text):
    return tf2_bert_patch.patch(text)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "run_pretraining.py"
    path.write_text(GENUINE_23)
    return path


def apply(path, **kwargs):
    state, _, _, changed = tf2_bert_patch.apply(str(path), str(path.with_name("state.json")), **kwargs)
    return {"changed": changed, "state": state}


def run(path, **kwargs):
    return call_module(tf2_bert_patch, path=str(path), state_path=str(path.with_name("state.json")), **kwargs)


@pytest.mark.parametrize(
    ("genuine", "patched", "variant"), [(GENUINE_23, PATCHED_23, "2.3.0"), (GENUINE_215, PATCHED_215, "2.15")]
)
def test_the_genuine_block_becomes_the_patched_one(genuine, patched, variant):
    assert patch(genuine) == (patched, variant)


@pytest.mark.parametrize("patched", [PATCHED_23, PATCHED_215])
def test_a_patched_file_stays_as_it_is(patched):
    assert patch(patched)[0] == patched


def test_the_lines_are_found_wherever_they_stand():
    assert patch("# a new line\n" * 40 + GENUINE_23)[0] == "# a new line\n" * 40 + PATCHED_23


def test_the_patch_takes_on_the_indentation_of_its_place():
    moved = "".join("  " + line for line in GENUINE_23.splitlines(True))
    assert patch(moved)[0] == "".join("  " + line for line in PATCHED_23.splitlines(True))


def test_the_patch_takes_on_the_line_ends_of_the_file():
    assert patch(GENUINE_23.replace("\n", "\r\n"))[0] == PATCHED_23.replace("\n", "\r\n")


def test_a_file_without_the_block_is_refused_with_what_was_expected():
    with pytest.raises(UnknownFileError, match=r"num_gpus=FLAGS\.num_gpus, / tpu_address=FLAGS\.tpu\)"):
        patch("print('hello')\n")


def test_an_empty_file_is_refused():
    with pytest.raises(UnknownFileError):
        patch("")


def test_a_block_with_a_changed_line_is_refused():
    with pytest.raises(UnknownFileError):
        patch(GENUINE_23.replace("tpu_address=FLAGS.tpu", "tpu_address=None"))


@pytest.mark.parametrize("block", [MODEL, MAIN_23])
def test_a_block_that_stands_twice_is_refused(block):
    with pytest.raises(UnknownFileError, match="occur 2 times"):
        patch(GENUINE_23 + block)


def test_a_file_that_makes_the_model_in_another_way_is_refused():
    with pytest.raises(UnknownFileError, match="Expected is the line return pretrain_model, core_model"):
        patch(MAIN_23)


@pytest.mark.parametrize("part", [MODEL + PATCHED_MAIN_23, PATCHED_MODEL + MAIN_23])
def test_a_file_with_a_part_of_the_patch_gets_the_rest(part):
    assert patch(part)[0] == PATCHED_23


def test_a_half_patched_file_is_refused():
    with pytest.raises(UnknownFileError):
        patch(PATCHED_23.replace("      all_reduce_alg=FLAGS.all_reduce_alg,\n", ""))


@pytest.mark.parametrize(
    "call",
    [
        "distribution_utils.configure_cluster(a, b)",
        "set_session_config()",
        "optimizer._create_all_weights(v)",
    ],
)
def test_a_file_that_somebody_else_patched_is_refused(call):
    with pytest.raises(UnknownFileError, match="another patch"):
        patch(GENUINE_23 + "  " + call + "\n")


def test_a_refusal_names_the_file_and_leaves_it_alone(script):
    script.write_text("something else\n")
    with pytest.raises(UnknownFileError, match=str(script)):
        apply(script)
    assert script.read_text() == "something else\n"
    assert sorted(path.name for path in script.parent.iterdir()) == ["run_pretraining.py"]


def test_a_file_that_is_no_text_is_refused(script):
    script.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnknownFileError, match=str(script)):
        apply(script)


def test_the_state_holds_the_digests_before_and_after(script):
    before, after = tf2_bert_patch.sha256(GENUINE_23.encode()), tf2_bert_patch.sha256(PATCHED_23.encode())
    state = apply(script)["state"]
    assert (state["before"], state["after"], state["variant"]) == (before, after, "2.3.0")
    assert json.loads(script.with_name("state.json").read_text()) == state


def test_the_second_time_changes_nothing(script):
    assert apply(script)["changed"] is True
    first = (script.stat().st_ino, script.with_name("state.json").read_text())
    assert apply(script)["changed"] is False
    assert (script.stat().st_ino, script.with_name("state.json").read_text()) == first


def test_an_interruption_between_state_and_file_is_made_good(script):
    state = apply(script)["state"]
    script.write_text(GENUINE_23)
    assert apply(script) == {"changed": True, "state": state}
    assert script.read_text() == PATCHED_23


def test_a_file_that_came_patched_has_no_digest_before(script):
    script.write_text(PATCHED_23)
    assert apply(script)["state"]["before"] is None


def test_the_patch_of_an_earlier_version_is_completed(script):
    before = tf2_bert_patch.sha256(GENUINE_23.encode())
    script.write_text(MODEL + PATCHED_MAIN_23)
    earlier = {"before": before, "after": tf2_bert_patch.sha256(script.read_bytes())}
    script.with_name("state.json").write_text(json.dumps(earlier))
    done = apply(script)
    assert (done["changed"], done["state"]["before"]) == (True, before)
    assert script.read_text() == PATCHED_23


def test_an_unreadable_state_is_written_anew(script):
    script.with_name("state.json").write_text("{")
    assert apply(script)["changed"] is True
    assert json.loads(script.with_name("state.json").read_text())["variant"] == "2.3.0"


def test_a_check_writes_nothing(script):
    assert apply(script, write=False)["changed"] is True
    assert script.read_text() == GENUINE_23
    assert not script.with_name("state.json").exists()


def test_the_patched_file_keeps_its_mode(script):
    script.chmod(0o750)
    apply(script)
    assert script.stat().st_mode & 0o777 == 0o750


def test_the_module_says_why_it_refuses(script):
    script.write_text("something else\n")
    result = run(script)
    assert result["failed"]
    assert result["msg"].startswith(f"{script} is not a known version of run_pretraining.py")


def test_a_script_that_does_not_exist_is_named(tmp_path):
    result = run(tmp_path / "run_pretraining.py")
    assert result["failed"] and f"cannot patch {tmp_path}/run_pretraining.py" in result["msg"]


def test_a_check_of_a_bare_machine_would_patch(tmp_path):
    assert run(tmp_path / "run_pretraining.py", check=True)["changed"] is True


def test_a_check_shows_the_difference_and_writes_nothing(script):
    result = run(script, check=True, diff=True)
    assert result["changed"] is True
    assert (result["diff"]["before"], result["diff"]["after"]) == (GENUINE_23, PATCHED_23)
    assert script.read_text() == GENUINE_23


def test_the_module_patches_once(script):
    assert run(script)["changed"] is True
    assert script.read_text() == PATCHED_23
    assert run(script)["changed"] is False
