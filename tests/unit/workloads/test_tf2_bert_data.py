# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The data set: the same text everywhere, complete or made from scratch, refused if it is not valid."""

import hashlib
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROLE = Path(__file__).resolve().parents[3] / "roles/tf2_bert"
SCRIPT = ROLE / "files/make_data.py"
DATA = runpy.run_path(str(SCRIPT))
RefusedError = DATA["RefusedError"]
CONFIGS = yaml.safe_load((ROLE / "defaults/main.yml").read_text())["tf2_bert_configs"]

# Stands in for create_pretraining_data.py: writes a little into every output file, notes that it ran.
OFFICIAL = """\
import sys
flags = dict(a[2:].split("=", 1) for a in sys.argv[1:])
for i, path in enumerate(flags["output_file"].split(",")):
    open(path, "w").write("record %d of %s" % (i, open(flags["input_file"]).read()[:20]))
open(__file__ + ".runs", "a").write("x")
sys.exit(int(open(__file__ + ".status").read()))
"""


@pytest.fixture
def job(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    (models / "create.py").write_text(OFFICIAL)
    (models / "create.py.status").write_text("0")
    return {
        "data": str(tmp_path / "home/data"),
        "python": sys.executable,
        "pythonpath": str(models),
        "script": "create.py",
        "nodes": 4,
        "files": 8,
        "seq_length": 128,
        "predictions": 20,
        "dupe_factor": 10,
        "seed": 2020,
        "documents": 3,
        "text_files": [],
        "vocab_file": "",
        "tfrecords": [],
        "configs": CONFIGS,
        "check": False,
    }


def prepare(job, **changes):
    return DATA["prepare"]({**job, **changes})


def runs(job):
    path = Path(job["pythonpath"], "create.py.runs")
    return len(path.read_text()) if path.exists() else 0


def records(tmp_path, count):
    folder = tmp_path / "own"
    folder.mkdir()
    for i in range(count):
        (folder / f"wiki_{i}.tfrecord").write_text(f"record {i}")
    return [str(folder / "*.tfrecord")]


def test_the_text_of_a_seed_is_the_same_on_every_machine():
    digest = hashlib.sha256(DATA["corpus"](2020, 300).encode()).hexdigest()
    assert digest == "8f8d1b8bbea54ee9b4a3d308a81fd6398de1fdad3238cae75198ff719d886643"


def test_another_seed_gives_another_text():
    assert DATA["corpus"](1, 3) != DATA["corpus"](2, 3)


def test_the_text_is_in_berts_format():
    documents = DATA["corpus"](2020, 5).rstrip("\n").split("\n\n")
    assert len(documents) == 5
    assert all(len(document.split("\n")) >= 6 for document in documents)
    assert all(line.endswith(" .") for document in documents for line in document.split("\n"))


def test_the_vocabulary_spells_every_word_of_the_text():
    vocabulary = DATA["vocabulary"](2020)
    assert vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(set(vocabulary)) == len(vocabulary)
    letters = set("".join(DATA["lexicon"](2020)))
    assert letters <= set(vocabulary)
    assert {"##" + letter for letter in letters} <= set(vocabulary)


def test_the_vocabulary_fits_the_tiny_model():
    assert len(DATA["vocabulary"](2020)) <= CONFIGS["tiny"]["vocab_size"]


def test_the_data_set_is_made_once(job):
    first = prepare(job)
    assert first["changed"] is True
    assert prepare(job) == {"changed": False, "manifest": first["manifest"]}
    assert runs(job) == 1


def test_there_are_as_many_files_as_asked_for(job):
    manifest = prepare(job, files=16)["manifest"]
    assert [entry["path"] for entry in manifest["tfrecords"]] == [
        f"tfrecord/part-{i:05}.tfrecord" for i in range(16)
    ]


def test_fewer_nodes_are_served_by_the_files_that_are_there(job):
    prepare(job, files=16)
    assert prepare(job, files=8)["changed"] is False


def test_more_nodes_require_new_data(job):
    prepare(job)
    assert prepare(job, files=16)["changed"] is True


@pytest.mark.parametrize("change", [{"seed": 1}, {"seq_length": 512}, {"documents": 4}])
def test_other_parameters_require_new_data(job, change):
    prepare(job)
    assert prepare(job, **change)["changed"] is True


@pytest.mark.parametrize("lost", ["vocab.txt", "tfrecord/part-00003.tfrecord"])
def test_a_lost_file_requires_new_data(job, lost):
    prepare(job)
    Path(job["data"], lost).unlink()
    assert prepare(job)["changed"] is True
    assert prepare(job)["changed"] is False


def test_a_directory_with_files_of_others_is_left_alone(job):
    Path(job["data"]).mkdir(parents=True)
    Path(job["data"], "thesis.tex").write_text("the user's own")
    with pytest.raises(RefusedError, match="tf2_bert_data=.*: thesis.tex would be removed"):
        prepare(job)
    assert Path(job["data"], "thesis.tex").read_text() == "the user's own"


def test_a_data_set_of_the_users_is_not_taken_for_one_of_scalebooks(job):
    prepare(job)
    Path(job["data"], "manifest.json").unlink()
    with pytest.raises(RefusedError, match="bert_config_base.json would be removed"):
        prepare(job)


def test_a_link_in_the_place_of_the_lock_is_not_followed(job, tmp_path):
    Path(job["data"]).parent.mkdir(parents=True)
    (tmp_path / "other").write_text("of somebody else")
    Path(job["data"] + ".lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        prepare(job)
    assert (tmp_path / "other").read_text() == "of somebody else"


def test_a_truncated_file_requires_new_data(job):
    prepare(job)
    Path(job["data"], "tfrecord/part-00000.tfrecord").write_text("rec")
    assert prepare(job)["changed"] is True


def test_what_an_interrupted_run_left_is_dropped(job):
    left = Path(job["data"] + ".new", "tfrecord")
    left.mkdir(parents=True)
    (left / "part-00099.tfrecord").write_text("half")
    prepare(job)
    assert not Path(job["data"], "tfrecord/part-00099.tfrecord").exists()


def test_the_manifest_holds_size_and_digest_of_every_file(job):
    manifest = prepare(job)["manifest"]
    for entry in manifest["tfrecords"] + manifest["made"]:
        content = Path(job["data"], entry["path"]).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


def test_a_check_makes_nothing(job, tmp_path):
    assert prepare(job, check=True)["changed"] is True
    assert not (tmp_path / "home").exists()


def test_a_failure_of_the_official_script_is_reported(job):
    Path(job["pythonpath"], "create.py.status").write_text("7")
    with pytest.raises(RefusedError, match=r"create_pretraining_data\.py ended with status 7"):
        prepare(job)
    assert not Path(job["data"]).exists()


def test_text_of_the_users_needs_its_vocabulary(job, tmp_path):
    (tmp_path / "text.txt").write_text("A sentence .\n")
    with pytest.raises(RefusedError, match="tf2_bert_vocab_file"):
        prepare(job, text_files=[str(tmp_path / "text.txt")])


def test_text_of_the_users_goes_through_the_official_script(job, tmp_path):
    (tmp_path / "text.txt").write_text("A sentence of mine .\n")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    prepare(
        job, text_files=[str(tmp_path / "*.txt")[:-5] + "text.txt"], vocab_file=str(tmp_path / "vocab.txt")
    )
    assert "A sentence of mine" in Path(job["data"], "tfrecord/part-00000.tfrecord").read_text()


def test_a_pattern_that_fits_no_file_is_refused(job):
    with pytest.raises(RefusedError, match=r"tf2_bert_tfrecords: no file fits /nowhere/\*\.tfrecord"):
        prepare(job, tfrecords=["/nowhere/*.tfrecord"])


def test_records_of_the_users_are_left_where_they_are(job, tmp_path):
    manifest = prepare(job, tfrecords=records(tmp_path, 4))["manifest"]
    assert [entry["path"] for entry in manifest["tfrecords"]] == [
        str(tmp_path / f"own/wiki_{i}.tfrecord") for i in range(4)
    ]
    assert runs(job) == 0


def test_fewer_records_than_nodes_are_refused(job, tmp_path):
    with pytest.raises(RefusedError, match="3 files for 4 nodes"):
        prepare(job, tfrecords=records(tmp_path, 3))


def test_records_of_the_users_need_not_be_more_than_nodes(job, tmp_path):
    patterns = records(tmp_path, 4)
    prepare(job, tfrecords=patterns)
    assert prepare(job, tfrecords=patterns)["changed"] is False


def test_records_of_the_users_that_changed_are_noticed(job, tmp_path):
    patterns = records(tmp_path, 4)
    prepare(job, tfrecords=patterns)
    assert prepare(job, tfrecords=patterns)["changed"] is False
    (tmp_path / "own/wiki_2.tfrecord").write_text("other")
    assert prepare(job, tfrecords=patterns)["changed"] is True


def test_a_vocabulary_larger_than_the_model_is_refused(job, tmp_path):
    (tmp_path / "vocab.txt").write_text("word\n" * 30523)
    with pytest.raises(RefusedError, match=r"30523 entries, the model base only vocab_size 30522"):
        prepare(job, vocab_file=str(tmp_path / "vocab.txt"))


def test_the_tiny_model_grows_with_the_vocabulary(job, tmp_path):
    (tmp_path / "vocab.txt").write_text("word\n" * 2000)
    prepare(job, vocab_file=str(tmp_path / "vocab.txt"))
    config = json.loads(Path(job["data"], "bert_config_tiny.json").read_text())
    assert config == {**CONFIGS["tiny"], "vocab_size": 2000}


def test_the_base_model_is_berts(job):
    prepare(job)
    config = json.loads(Path(job["data"], "bert_config_base.json").read_text())
    assert (config["num_hidden_layers"], config["hidden_size"], config["vocab_size"]) == (12, 768, 30522)


def test_the_same_data_on_two_nodes_have_the_same_identity(job, tmp_path):
    here = prepare(job)["manifest"]["identity"]
    assert prepare(job, data=str(tmp_path / "there/data"))["manifest"]["identity"] == here


def test_other_records_of_the_users_have_another_identity(job, tmp_path):
    patterns = records(tmp_path, 4)
    here = prepare(job, tfrecords=patterns)["manifest"]["identity"]
    (tmp_path / "own/wiki_2.tfrecord").write_text("record 9")
    assert prepare(job, tfrecords=patterns)["manifest"]["identity"] != here


def test_the_command_says_why_it_refuses(job):
    job["tfrecords"] = ["/nowhere"]
    done = subprocess.run([sys.executable, SCRIPT, json.dumps(job)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "refused: tf2_bert_tfrecords: no file fits /nowhere\n"
