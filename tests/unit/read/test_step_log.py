# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reading one log: exact on what TensorFlow wrote, and never a wrong number from a bad one."""

import os
import resource
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.files import NotRegularError
from ansible.module_utils.scalebook.read import step_log
from ansible.module_utils.scalebook.read.step_log import number, plain_lines
from cases import case
from declared import vary
from dlperf_logs import WORKLOAD, exit_record, log_of_speed, log_text, stamped, step_line, step_times
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_english import read_log

DATA = Path(__file__).resolve().parents[2] / "data" / "tf2_bert"
TF2 = WORKLOAD
LOG = WORKLOAD.data["log"]


def of(**log):
    """Return a workload that differs from TensorFlow's in its keys of `log`."""
    return vary(WORKLOAD, log=log, sanity=[])


RATED = of(literal="step=", step=r"step=(?P<step>\d+) rate=(?P<rate>\S+)", rate={"scope": "rank"})


def write(tmp_path, content, name="NODE1.log"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def seconds(log):
    """Return the seconds from step 20 to step 120."""
    at = dict(zip(log.steps, log.times, strict=True))
    return (at[120] - at[20]) / 1e6


@pytest.mark.parametrize(
    ("name", "window", "first", "last"),
    [
        ("1n_mirrored", 6.944191, 7.133494853973389, 6.687038421630859),
        ("2n_w0", 22.428402, 7.149407386779785, 6.750018119812012),
        ("2n_w1", 22.431732, 7.149407386779785, 6.750018119812012),
        ("lo2_seedpatch_only_w0", 11.754122, 7.132853984832764, 6.755782127380371),
        ("unpatched_single", 9.73742, 7.137323379516602, 6.928359508514404),
    ],
)
@pytest.mark.parametrize("block", [1 << 16, 777, 64])
def test_genuine_logs_give_their_window_to_the_microsecond(name, window, first, last, block):
    log = read_log(DATA / f"{name}.log", TF2, block)
    assert list(log.steps) == list(range(1, 121))
    assert seconds(log) == window
    assert (log.first_loss, log.last_loss, log.refusal, log.notes) == (first, last, None, [])


def test_a_genuine_log_with_a_line_every_ten_steps_gives_its_window():
    log = read_log(DATA / "h200_steps_per_loop_10.log", TF2)
    assert (list(log.steps), round(seconds(log), 6)) == (list(range(10, 121, 10)), 4.330502)


def test_the_window_of_a_genuine_log_by_an_independent_reading():
    lines = (DATA / "2n_w0.log").read_text().splitlines()
    at = {}
    for line in lines:
        if "Train Step: " in line:
            step = int(line.split("Train Step: ")[1].split("/")[0])
            at[step] = datetime.strptime("2020" + line[1:21], "%Y%m%d %H:%M:%S.%f")
    assert seconds(read_log(DATA / "2n_w0.log", TF2)) == (at[120] - at[20]).total_seconds()


def test_what_a_genuine_log_shows_of_itself():
    log = read_log(DATA / "2n_w1.log", TF2)
    assert log.found == {"devices": ["2"], "num_workers": ["2"], "end": [""]}
    assert log.declared == {"120"}
    assert log.last_lines[-1].endswith("Servers don't support clean shutdown.")


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (datetime(2020, 8, 26, 23, 59, 50), "midnight"),
        (datetime(2020, 12, 31, 23, 59, 50), "New Year"),
        (datetime(2021, 2, 28, 23, 59, 50), "28 February"),
        (datetime(2020, 2, 29, 23, 59, 50), "29 February"),
    ],
)
def test_a_window_over_a_change_of_date_is_measured(tmp_path, start, what):
    text = log_of_speed(128.0, start=start)
    assert seconds(read_log(write(tmp_path, text), TF2)) == 50.0, what


def test_a_clock_set_back_is_refused_by_its_two_steps(tmp_path):
    times = step_times(0.5)
    times[60:] = [at - timedelta(seconds=5) for at in times[60:]]
    log = read_log(write(tmp_path, log_text(times)), TF2)
    assert log.refusal == "the clock goes back between step 60 and step 61"


def test_a_step_logged_twice_is_refused(tmp_path):
    lines = log_of_speed(128.0).splitlines(keepends=True)
    doubled = "".join(line * (2 if "Train Step" in line else 1) for line in lines)
    log = read_log(write(tmp_path, doubled), TF2)
    assert log.refusal == "step 1 is logged twice: two ranks or two runs in one file"


def test_two_runs_in_one_file_are_refused_even_beyond_the_window(tmp_path):
    log = read_log(write(tmp_path, log_of_speed(128.0) * 2), TF2)
    assert log.refusal == "step 1 is logged twice: two ranks or two runs in one file"


def test_two_ranks_mixed_within_a_line_are_refused(tmp_path):
    text = log_of_speed(128.0)
    both = text.replace("\nI0826 18:07:03", " I0826 18:07:03", 1)
    assert both != text
    assert "one line holds several entries of a step" in read_log(write(tmp_path, both), TF2).refusal


def test_a_second_run_that_is_shorter_is_refused(tmp_path):
    text = (
        log_text(step_times(0.4, count=120))
        + step_line(200, datetime(2020, 8, 27))
        + step_line(150, datetime(2020, 8, 27))
    )
    log = read_log(write(tmp_path, text), TF2)
    assert log.refusal == "step 150 comes after step 200: two ranks or two runs in one file"


@pytest.mark.parametrize("loss", ["nan", "NaN", "inf", "-inf", "nan,", "-nan(ind)"])
def test_a_loss_that_is_no_finite_number_is_refused(tmp_path, loss):
    lines = log_of_speed(128.0).splitlines(keepends=True)
    lines[57] = lines[57].replace("7.02980375289917", loss)
    assert "at step 57" in read_log(write(tmp_path, "".join(lines)), TF2).refusal


def test_a_loss_lost_after_the_window_is_refused(tmp_path):
    text = log_text(step_times(0.4, count=4000), last=4000)
    cut = text.rindex("7.02980375289917")
    log = read_log(write(tmp_path, text[:cut] + "nan" + text[cut + 16 :]), TF2)
    assert log.refusal == "the loss is nan at step 4000"


def test_a_loss_that_is_no_number_is_noted(tmp_path):
    lines = log_of_speed(128.0).splitlines(keepends=True)
    lines[57] = lines[57].replace("7.02980375289917", "7.0x98")
    log = read_log(write(tmp_path, "".join(lines)), TF2)
    assert (log.refusal, log.notes) == (None, ["the loss at step 57 is '7.0x98', which is not a number"])


def test_decimal_commas_of_another_locale_are_read(tmp_path):
    text = log_of_speed(128.0).replace("7.02980375289917", "7,0298").replace(".031755", ",031755")
    text = text.replace("(?P<time>", "")
    comma = vary(WORKLOAD, log={**LOG, "step": LOG["step"].replace(r"\.", "[.,]")})
    log = read_log(write(tmp_path, text), comma)
    assert (seconds(log), log.last_loss, log.refusal) == (50.0, 7.0298, None)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"I0826", b"\x1b[32mI\x1b[0m0826").replace(b"Train", b"Train\x1b[1m"),
        lambda data: data.replace(b"Train Step", b"\0Train\0 Step"),
        lambda data: data.replace(b"INFO", b"\xff\xfe"),
        lambda data: b"\xc3\x28 broken\n" + data,
        lambda data: data.replace(b"***** Number", b"\0" * 5_000_000 + b"\n***** Number"),
        lambda data: data.replace(b"***** Number", b"x" * 200_000 + b"\n***** Number"),
    ],
    ids=["CRLF", "ANSI colours", "NUL bytes", "not UTF-8", "broken UTF-8", "a hole of NULs", "a long line"],
)
def test_odd_bytes_do_not_change_the_number(tmp_path, change):
    log = read_log(write(tmp_path, change(log_of_speed(128.0).encode())), TF2)
    assert (seconds(log), log.refusal, log.found["devices"]) == (50.0, None, ["1"])


@pytest.mark.parametrize(
    ("content", "steps"),
    [(b"", 0), (b"\n\n", 0), (b"\0\0\0", 0), (log_text(step_times(0.5, count=60)).encode(), 60)],
    ids=["empty", "blank", "NUL", "60 steps"],
)
def test_a_log_that_stops_early_shows_where(tmp_path, content, steps):
    log = read_log(write(tmp_path, content), TF2)
    assert len(log.steps) == steps and log.last_step == (steps or None)


def test_a_last_line_cut_off_within_its_figures_is_not_read(tmp_path):
    bare = of(literal="step=", step=r"step=(?P<step>\d+)")
    assert list(read_log(write(tmp_path, b"step=1\nstep=2"), bare).steps) == [1]
    assert list(read_log(write(tmp_path, b"step=1\nstep=2 "), bare).steps) == [1, 2]


def test_a_line_of_hundreds_of_megabytes_costs_neither_memory_nor_time(tmp_path):
    path = tmp_path / "line.log"
    chunk = b"Train Step: 1/120 / loss = 7.0 " * 33_826  # a megabyte
    with path.open("wb") as file:
        for _ in range(256):
            file.write(chunk)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    log = read_log(path, TF2)
    path.unlink()
    assert time.process_time() - start < 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB
    assert (len(log.steps), log.size > 25 * 10**7) == (0, True)
    assert "has a line of more than 16 KiB, of which only the head was read" in log.notes


def test_reading_stops_after_the_window(tmp_path, monkeypatch):
    path = write(tmp_path, log_of_speed(128.0))
    with path.open("ab") as file:
        file.truncate(1 << 30)  # sparse: a gigabyte nobody wrote
    asked = []
    original = step_log.Blocks.__init__

    def spy(self, file, *args):
        original(self, file, *args)
        asked.append(self)

    monkeypatch.setattr(step_log.Blocks, "__init__", spy)
    log = read_log(path, TF2)
    assert seconds(log) == 50.0
    assert asked[0].offset < 1 << 17


def test_steps_after_the_window_are_not_kept(tmp_path):
    log = read_log(write(tmp_path, log_text(step_times(0.4, count=4000), last=4000)), TF2)
    assert (len(log.steps), log.last_step, log.refusal) == (120, 4000, None)


@pytest.mark.parametrize("every", [1, 2])
def test_a_log_of_step_lines_reads_the_same_in_one_piece_and_line_by_line(tmp_path, every, monkeypatch):
    text = log_text(step_times(0.05, count=5000), last=5000)
    if every == 2:
        text = text.replace("\nI", "\nnoise\nI")
    path = write(tmp_path, text)
    whole = vary(WORKLOAD, window=4980)
    quick = read_log(path, whole)
    monkeypatch.setattr(step_log, "_line_pattern", lambda *_: None)
    assert read_log(path, whole) == quick
    assert len(quick.steps) == 5000


def test_stamped_logs_read_the_same_in_one_piece_and_line_by_line(tmp_path, monkeypatch):
    path = write(tmp_path, stamped(log_text(step_times(0.05, count=5000), last=5000), every=0.05))
    whole = vary(WORKLOAD, window=4980)
    quick = read_log(path, whole)
    monkeypatch.setattr(step_log, "_line_pattern", lambda *_: None)
    assert read_log(path, whole) == quick
    assert len(quick.received) == 5000


def test_a_pattern_that_could_run_over_a_line_end_gives_no_step_more(tmp_path):
    loose = of(literal="step=", step=r"step=(?P<step>\d+)\s+loss=(?P<loss>\S+)")
    text = "".join(f"step={step} loss=1.0\n" for step in range(1, 100)) + "step=100\nloss=1.0 step=\n" * 3
    log = read_log(write(tmp_path, text), loss_block := loose, 64)
    assert loss_block is loose and list(log.steps) == list(range(1, 100))


def test_run_node_stamps_and_events_are_read(tmp_path):
    text = stamped(log_of_speed(128.0), every=0.5, exit_record=exit_record())
    log = read_log(write(tmp_path, text), TF2)
    assert seconds(log) == 50.0
    assert log.received[119] - log.received[19] == 50_000_000
    assert log.start["node"] == "NODE1" and log.exit["rc"] == 0
    assert not any("SCALEBOOK" in line or line.startswith("5123") for line in log.last_lines)


def test_what_the_workload_prints_is_no_event_of_run_node(tmp_path):
    text = stamped('SCALEBOOK {"event": "exit", "rc": 0}\nSCALEBOOK {broken\n')
    assert read_log(write(tmp_path, text), TF2).exit is None


def test_a_step_line_without_a_stamp_costs_the_receive_times_only(tmp_path):
    lines = stamped(log_of_speed(128.0), every=0.5).splitlines(keepends=True)
    lines[60] = lines[60].split(" ", 2)[2]
    log = read_log(write(tmp_path, "".join(lines)), TF2)
    assert (seconds(log), log.received) == (50.0, None)
    assert log.notes == ["1 step lines have no receive stamp"]


def test_rates_printed_in_step_lines_are_read(tmp_path):
    log = read_log(write(tmp_path, "step=1 rate=99.5\nstep=2 rate=101\n\n"), RATED)
    assert list(log.rates) == [99.5, 101.0]


def test_a_printed_latency_is_read_as_the_rate_of_a_step(tmp_path):
    """A step of two devices with 8 samples each in 4 ms, in 5 ms."""
    declared = of(literal="step=", step=r"step=(?P<step>\d+) ms=(?P<latency>\S+)")
    batch = declared.of_case(case(gpus=2, bsz=8))
    log = read_log(write(tmp_path, "step=1 ms=4\nstep=2 ms=5.0\n\n"), batch)
    assert list(log.rates) == [4000.0, 3200.0]


@pytest.mark.parametrize("rate", ["nan", "0", "-3", "inf", "1,285", "fast"])
def test_a_rate_that_is_no_rate_is_refused(tmp_path, rate):
    assert "a rate is" in read_log(write(tmp_path, f"step=1 rate={rate}\n\n"), RATED).refusal


def test_rates_on_lines_of_their_own_belong_to_the_step_before(tmp_path):
    apart = of(
        literal="step=",
        step=r"step=(?P<step>\d+)",
        rate={"literal": "img/s", "pattern": r"(?P<rate>[\d.]+) img/s"},
    )
    text = "5 img/s\n" + "".join(f"step={step}\n{step}.5 img/s\n" for step in range(1, 130))
    for block in (1 << 16, 16):
        log = read_log(write(tmp_path, text), apart, block)
        assert dict(zip(log.steps, log.rates, strict=True)) == {step: step + 0.5 for step in range(1, 121)}


def test_rates_on_lines_of_their_own_may_name_their_step(tmp_path):
    keras = of(
        literal="Train Step: ",
        step=LOG["step"],
        time="absl",
        rate={
            "literal": "TimeHistory",
            "pattern": r"(?P<rate>[\d.]+) examples/second between steps \d+ and (?P<step>\d+)",
        },
    )
    log = read_log(DATA / "2n_w1.log", keras)
    rates = {step: rate for step, rate in zip(log.steps, log.rates, strict=True) if rate == rate}
    assert rates[120] == 115.49 and sorted(rates) == list(range(10, 121, 10))


@pytest.mark.parametrize(
    ("text", "value"), [(b"7.5", 7.5), (b"7,5", 7.5), (b"1234,567", 1234.567), (b"1e3", 1000.0)]
)
def test_a_decimal_comma_is_a_point(text, value):
    assert number(text) == value


@pytest.mark.parametrize("text", [b"1,285", b"1.234,5", b"", b"x"])
def test_a_number_that_could_be_two_is_none(text):
    with pytest.raises(ValueError, match="could not convert"):
        number(text)


def test_last_lines_are_fit_to_be_shown():
    data = b"\x1b[31mred\x1b[0m\x07\n\ta\xff\tb\r\n" + b"y" * 600 + "\u202eevil\n".encode()
    assert plain_lines(data) == ["red", " a\ufffd b", "y" * 500]


@pytest.mark.parametrize("name", ["a directory", "a fifo"])
def test_what_is_no_file_is_refused_at_once(tmp_path, name):
    path = tmp_path / "x.log"
    if name == "a fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(NotRegularError, match="is a directory|is not a regular file"):
        read_log(path, TF2)


def test_step_numbers_beyond_all_bounds_are_refused(tmp_path):
    for digits in ("9" * 25, "9" * 5000):
        refusal = read_log(write(tmp_path, f"step={digits} rate=1\n\n"), RATED).refusal
        assert refusal in ("a step number is beyond all bounds", "a step line has no step number")
    assert sys.maxsize > 1 << 62


@pytest.mark.parametrize("line", [0, 60])
def test_a_receive_stamp_beyond_all_bounds_is_none(tmp_path, line):
    lines = stamped(log_text(step_times(0.4)), every=0.4).splitlines(keepends=True)
    lines[2 + line] = "9" * 30 + lines[2 + line]
    log = read_log(write(tmp_path, "".join(lines)), TF2)
    assert (log.received, log.refusal) == (None, None)
    assert log.notes == ["1 step lines have no receive stamp"]


@pytest.mark.parametrize(
    "said",
    [
        '{"event": "exit", "rc": 0}',
        '{"event": "exit", "status": ["exited"], "rc": 0}',
        '{"event": "exit", "status": "exited", "rc": NaN}',
        '{"event": "exit", "status": "exited", "ended": 1e999}',
        '{"event": "exit", "status": "exited"',
    ],
)
def test_a_closing_line_that_is_damaged_is_none(tmp_path, said):
    text = stamped(log_text(step_times(0.4))) + f"5123.000000 1795219345.000000 SCALEBOOK {said}\n"
    assert read_log(write(tmp_path, text), TF2).exit is None


ODD = ("", "T", "Train", "Train Step: 3/9", "1120 23:53:45.7", "0826 18:06:39.031755 ", "[", "\r", "x" * 30)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    places=st.lists(
        st.tuples(st.integers(0, 59), st.sampled_from(("head", "middle", "tail")), st.sampled_from(ODD)),
        max_size=4,
    ),
    stamps=st.booleans(),
)
def test_a_block_of_step_lines_reads_as_its_lines_do(tmp_path, monkeypatch, places, stamps):
    lines = [step_line(step, at) for step, at in enumerate(step_times(0.4, count=60), 1)]
    for line, where, text in places:
        head, middle, tail = lines[line].partition(" model_training")
        parts = {"head": head, "middle": middle, "tail": tail.removesuffix("\n")}
        parts[where] += text
        lines[line] = parts["head"] + parts["middle"] + parts["tail"] + "\n"
    path = write(tmp_path, stamped("".join(lines)) if stamps else "".join(lines))
    quick = read_log(path, TF2, 1 << 12)
    with monkeypatch.context() as patch:
        patch.setattr(step_log._Reader, "_choose", lambda *_: None)
        assert read_log(path, TF2, 1 << 12) == quick


def test_a_block_of_step_lines_is_matched_at_once(tmp_path, monkeypatch):
    text = "".join(step_line(step, at) for step, at in enumerate(step_times(0.4), 1)).encode()
    first = text.index(b"\n") + 1
    with write(tmp_path, text).open("rb") as file:
        reader = step_log._Reader(TF2, file, 1 << 12)
        reader._begin(text)
        assert reader._steps(text[:first]) is False  # teaches how often the literal stands in a line
        monkeypatch.setattr(step_log, "_lines_with", None)
        assert reader._steps(text[first:]) is True
    assert reader.log.last_step == 120
    assert reader.quick[0] in (b"S", b"T")
