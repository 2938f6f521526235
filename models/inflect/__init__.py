"""Inflect v2 (Micro, Nano): a plain VITS of one speaker; its torch definition, its two ONNX graphs and a stand-in.

from models.inflect.config import MICRO, NANO, InflectConfig    the sizes; no torch
from models.inflect.layout import layout                        names and shapes of the folded weights; no torch
from models.inflect.weights import checked, folded              weight norm folded, a layout checked; no torch
from models.inflect.stand_in import stand_in                    seeded random weights; no torch
from models.inflect.model import load                           the model of such weights
from models.inflect.graphs import decode_graph, duration_graph  the published files' graphs
"""
