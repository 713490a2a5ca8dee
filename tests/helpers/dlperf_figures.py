# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What DLPerf printed for TensorFlow 2 BERT, fp32, batch 64 per GPU: its TensorFlow/bert/README.md."""

# Samples/s of repeats 1 to 5.
SPEEDS = {
    "1n1g": [113.55, 114.95, 112.99, 112.71, 111.67],
    "1n2g": [204.3, 202.48, 204.16, 204.96, 203.15],
    "1n4g": [399.56, 402.02, 404.06, 402.34, 400.27],
    "1n8g": [806.74, 805.43, 806.01, 805.41, 803.36],
    "2n8g": [1237.07, 1242.44, 1237.47, 1239.3, 1249.61],
    "4n8g": [2238.39, 2237.6, 2252.55, 2249.41, 2244.38],
}
# {(nodes, devices of a node): samples/s}
SPEEDS_BY_SIZE = {(int(label[0]), int(label[2])): speeds for label, speeds in SPEEDS.items()}
# Its result file.
PUBLISHED = {
    label: {"average_speed": average, "batch_size_per_device": 64, "median_speed": median, "speedup": speedup}
    for label, average, median, speedup in [
        ("1n1g", 113.17, 112.99, 1.0),
        ("1n2g", 203.81, 204.16, 1.81),
        ("1n4g", 401.65, 402.02, 3.56),
        ("1n8g", 805.39, 805.43, 7.13),
        ("2n8g", 1241.18, 1239.3, 10.97),
        ("4n8g", 2244.47, 2244.38, 19.86),
    ]
}
