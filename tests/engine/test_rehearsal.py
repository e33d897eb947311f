"""A stack is rehearsed by the real engine."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pulumi
import pytest

from rehearsal.engine import Audience, EngineFailure, EngineKilled, Outcome, Rehearsal, Subject
from rehearsal.engine.clouds import StandInClouds
from rehearsal.engine.folder import EngineFolder
from rehearsal.engine.process import EngineProcess
from rehearsal.engine.settings import read_yaml
from rehearsal.errors import RehearsalError
from rehearsal.json import Json
from rehearsal.paths import Workspace
from rehearsal.providers.faults import Faults
from scheduling.errors import ConfigError, Problem
from tests.support.control_plane import CHECKOUT, scratch_workspace
from tests.support.rehearsals import write_lock
