"""Logical plan to physical plan: pipelines of stateless steps, and stages that hold state.

A stage is a window aggregation, or another operator that holds rows. Every path that leads to it is a pipeline;
selections, projections and the pane level commute with the union, so each path runs them before rows meet. A host
decides where pipelines and stages run: in one graph, or before and after an exchange.
"""

from windrow.planner.build import plan
from windrow.planner.choice import Given
from windrow.planner.graphs import Shared, add_stage, add_steps, asked, whole_graph
from windrow.planner.groups import Combined, Common, Group, combined, plan_group, units_of
from windrow.planner.partition import ByKeys, BySlice, Partition, ToAll
from windrow.planner.plan import MELD, Arm, Meeting, Pipeline, Plan, Read, Stage, Step
from windrow.planner.windows import ALGORITHMS

__all__ = [
    "ALGORITHMS",
    "MELD",
    "Arm",
    "ByKeys",
    "BySlice",
    "Combined",
    "Common",
    "Given",
    "Group",
    "Meeting",
    "Partition",
    "Pipeline",
    "Plan",
    "Read",
    "Shared",
    "Stage",
    "Step",
    "ToAll",
    "add_stage",
    "add_steps",
    "asked",
    "combined",
    "plan",
    "plan_group",
    "units_of",
    "whole_graph",
]
