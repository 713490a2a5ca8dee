"""Common mistakes at the terminal: each ends with one line that names the thing, the value and the fix.

What ssh and sudo report is in tests/unit/project/test_callback.py.
"""

import pytest
from ansible.module_utils.scalebook.plan.parameters import ParameterError, read
from planned import known

FOUR_CPU_NODES = known()._replace(nodes=4, slots=1)

MISTAKES = [
    # playbook, its extra variables, what the line names, the fix
    ("bench", {"dtype": "fp8"}, "dtype=fp8", "bf16 is of deepspeed_bert, hf_llama, hf_mlm …"),
    ("bench", {"bsz": "64,", "dtype": "fp16"}, "bsz=64,", "parameters have none between them"),
    ("bench", {"bsz": "32,", "_raw_params": "64"}, "'64' is not NAME=VALUE", "bsz=32,64"),
    ("bench", {"bsz": "0"}, "bsz=0", "whole numbers from 1 to"),
    ("bench", {"gpus": "3", "dtype": "fp64"}, "dtype=fp64", "gpus=3: the only allowed value is 1"),
    ("bench", {"nodes": "8"}, "nodes=8", "1 to 4, the nodes of this inventory"),
    ("bench", {"topology": "2x8"}, "topology=2x8", "1n8g, one node with eight devices"),
    ("bench", {"topology": "1n1g", "gpus": "1"}, "gpus=1", "leave out nodes and gpus"),
    ("bench", {"workload": "tf2-bert"}, "workload=tf2-bert", "did you mean tf2_bert?"),
    ("bench", {"workload": "microbench"}, "workload=microbench", "ansible-playbook microbench.yml"),
    ("acceptance", {"least": "100"}, "least=100", "allowed are 1 to 99"),
    ("acceptance", {"least": "0.9"}, "least=0.9", "allowed are 1% to 100%"),
    ("acceptance", {"measurements": "0"}, "measurements=0", "whole numbers from 1 to 1000"),
    ("acceptance", {"workload": "tf2_bert"}, "workload", "acceptance.yml has no such parameter"),
    ("bench", {"framework": "torch"}, "framework=torch", "its workloads are torch_bert"),
    ("bench", {"model": "large"}, "model=large", "allowed are tiny, base"),
    ("bench", {"xla": "maybe"}, "xla=maybe", "true and false"),
    ("bench", {"plan_only": "ture"}, "plan_only=ture", "true and false"),
    ("bench", {"repeat": "3"}, "repeat", "did you mean repeats?"),
    ("bench", {"batch": "64"}, "batch", "allowed are workload, stack_name, model, dtype, xla, bsz"),
    ("bench", {"stack": "modern"}, "stack=modern", "stack_name=modern"),
    (
        "bench",
        {"workload": "torch_bert", "stack_name": "dlperf2020"},
        "stack_name=dlperf2020",
        "leave it out, or use modern",
    ),
    (
        "bench",
        {"torch_bert_parallel": "fsdp"},
        "torch_bert_parallel=fsdp",
        "use workload=tf2_bert,torch_bert",
    ),
    ("bench", {"corpus": "wiki"}, "corpus=wiki", "the path of a directory on the nodes"),
    (
        "bench",
        {"workload": "torch_bert,horovod_bert", "corpus": "/wiki"},
        "corpus=/wiki",
        "not read by horovod_bert: leave",
    ),
    ("bench", {"workload": "torch_resnet50", "corpus": "/wiki"}, "not read by torch_resnet50", "tf2_bert"),
    ("bench", {"logs": "dir"}, "logs", "ansible-playbook import.yml"),
    ("bench", {"baseline": "https://me:pw@host/x"}, "baseline=https://***@host/x", "give it without"),
    ("bench", {"min_utilisation": "0.8"}, "min_utilisation=0.8", "1% to 100%"),
    ("report", {"bsz": "64"}, "bsz", "only bench.yml"),
    ("report", {"campaign": "results/night"}, "campaign='results/night'", "letters, digits, dot, dash"),
    ("report", {"max_regression": "5%"}, "max_regression=5%", "only with baseline=NAME"),
    ("report", {"report_language": "cn"}, "report_language=cn", "allowed are en, zh"),
    ("remove", {}, "workload", "give what is to be removed with -e"),
    ("share", {"push": "mlflow"}, "push=mlflow", "push_to=results/mlflow"),
    ("claim", {"tokens_per_second": "14,451"}, "tokens_per_second=14,451", "such as 14451"),
    ("claim", {"tokens_per_second": "0"}, "tokens_per_second=0", "numbers above 0"),
    ("claim", {"dtype": "int8"}, "dtype=int8", "allowed are fp32, tf32, fp16, bf16, fp8"),
    ("claim", {"seq": "8k"}, "seq=8k", "whole numbers from 1"),
]


@pytest.mark.parametrize(("playbook", "given", "named", "fix"), MISTAKES)
def test_a_mistake_is_one_line_that_names_it_and_its_fix(playbook, given, named, fix):
    with pytest.raises(ParameterError) as error:
        read([playbook], given, given, FOUR_CPU_NODES)
    line = str(error.value)
    assert named in line and fix in line and "\n" not in line


def test_a_campaign_of_other_models_too_trains_its_bert_on_the_corpus():
    given = {"workload": "tf2_bert,torch_bert,torch_resnet50", "corpus": "/wiki"}
    assert read(["bench"], given, given, FOUR_CPU_NODES)["corpus"] == "/wiki"
