# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""hf_mlm: the vocabulary of a user's texts. It needs no package tokenizers."""

from collections import Counter

from role_files import ROLES, load

make_data = load("hf_mlm", "make_data")

WORDS = Counter({"be": 5, "ab": 5, "a": 2, "cab": 1})


def test_the_special_tokens_are_the_first_as_the_samples_have_them():
    samples = (ROLES / "transformers/files/word_samples.py").read_text()
    assert "PAD, CLS, SEP, MASK, FIRST_WORD = 0, 2, 3, 4, 5" in samples
    assert make_data.vocabulary(WORDS, 40)[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_letters_come_before_words_and_the_frequent_before_the_rare():
    letters = ["b", "a", "e", "c"]
    tokens = make_data.vocabulary(WORDS, 40)[5:]
    assert tokens == letters + [f"##{letter}" for letter in letters] + ["ab", "be", "cab"]


def test_the_order_of_the_texts_does_not_change_the_numbers():
    other = Counter(dict(reversed(list(WORDS.items()))))
    assert make_data.vocabulary(other, 40) == make_data.vocabulary(WORDS, 40)


def test_a_vocabulary_is_never_larger_than_the_model_s():
    assert len(make_data.vocabulary(Counter({chr(0x4E00 + n): 1 for n in range(3000)}), 1024)) <= 1024
