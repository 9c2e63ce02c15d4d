"""The names of our own columns: those that begin with "@", and those that results have besides the user's."""

from __future__ import annotations

REASON = "reason"

FUTURE = "@future"

MARK = "@mark"

PROGRESS = "@t"  # the progress value as a 64-bit integer: microseconds, days, or the integer itself

PANE = "@pane"

WID = "@wid"

CHUNK = "@chunk"

VERSION, STATUS = "version", "status"

ROW_NUM, NTH = "@row_num", "@nth"

TOTAL = "@total"

ROW = "@row"  # the whole row, as a struct

INPUT = "@input"  # the number of the source of a row, where there are several

N = "@n"  # a number of rows

SOURCE = "@source"  # the source partition of a row, where promises are per partition

SLOT = "@slot"

HOME = "@home"  # of a row that is copied to several shards: whether this is the copy that is counted

WINDOW_START, WINDOW_END, WINDOW_TIME = "window_start", "window_end", "window_time"

ARRIVAL_TS, POSITION = "arrival_ts", "row_num"  # when a row arrived, and as which: attributes that need no declaration

BRANCH = "@branch"  # the name of what a branch of a Split begins with

TIE = "@tie"  # begins the names of columns that only decide which of rows with equal times is the later one
