-- The run database, schema 2.  (Schema 2 added what priced each work, and what the allocator held;
-- a file of schema 1 is refused: record its runs again.)
--
-- Units: *_bytes are bytes, *_ps picoseconds, *_elements numbers of elements; all integers.
-- Words that repeat (classes, roles, phases, kinds, streams, units, rules) are rows of `name` and are
-- referred to by its id; the views resolve them, so people query the views:
--
--   Which runs are there, and do they fit?
--     SELECT run, name, step_ms, exposed_ms, peak_gib, fits FROM run_summary;
--   What made up the peak of run 1, largest first?
--     SELECT class, bytes, percent FROM peak_composition WHERE run = 1;
--   Which buffers were alive at that moment?
--     SELECT class, role, unit, bytes FROM peak_buffers WHERE run = 1 LIMIT 20;
--   How did gathered parameters move over the step?
--     SELECT time_ms, class_bytes FROM memory_timeline
--      WHERE run = 1 AND space = 'device' AND class = 'gathered parameter';
--   What did the caching allocator hold beyond it (device.allocator)?
--     SELECT time_ms, allocated_bytes, active_bytes, reserved_bytes FROM allocator_timeline
--      WHERE run = 1;
--   Which units wait for the network?
--     SELECT unit, phase, kind, exposed_ms FROM exposed_by_unit WHERE run = 1 LIMIT 10;
--   What went over the links?
--     SELECT kind, phase, count, bytes, wire_bytes FROM collectives WHERE run = 1;
--   Which rule priced each collective, and what bandwidth does that mean?
--     SELECT kind, ranks, rule, count, bytes, busy_ms, bus_gb_per_s FROM prices WHERE run = 1;
--   Does the simulation agree with the closed form?
--     SELECT class, simulated_bytes, ledger_bytes FROM persistent_against_ledger WHERE run = 1;
--   All points of a sweep, and those that no other point beats on both counts:
--     SELECT point, "values", step_ms, peak_gib, fits FROM sweep_table WHERE sweep = 1;
--     SELECT point, "values", step_ms, peak_gib FROM pareto WHERE sweep = 1;
--   One axis against the peak:
--     SELECT n.text, p.peak_bytes FROM sweep_point p JOIN sweep_value v USING (sweep, point)
--       JOIN name n ON n.id = v.value
--      WHERE p.sweep = 1 AND v.axis = 0 ORDER BY p.point;
--   What was assumed rather than said?
--     SELECT section, key, value FROM input WHERE run = 1 AND origin IN ('default', 'auto');

CREATE TABLE name (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);

-- One simulated step (or several: figures are those of the last) of one rank.
CREATE TABLE run (
    id                INTEGER PRIMARY KEY,
    name              TEXT NOT NULL,
    version           TEXT NOT NULL,     -- of the program that wrote it
    source            TEXT,              -- scenario path or name
    runtime           TEXT NOT NULL,
    model             TEXT NOT NULL,
    parameter_elements INTEGER NOT NULL, -- of the model; where it is cut, of a rank's part
    stage             INTEGER NOT NULL,
    ranks             INTEGER NOT NULL,  -- that hold the same parameters: data x context parallel
    shard_group       INTEGER NOT NULL,
    step_ps           INTEGER NOT NULL,
    step_low_ps       INTEGER NOT NULL,  -- with nine chances of ten between these
    step_high_ps      INTEGER NOT NULL,
    grade             INTEGER NOT NULL REFERENCES name(id), -- of what prices layers
    exposed_ps        INTEGER NOT NULL,  -- communication or copies without compute
    host_blocked_ps   INTEGER NOT NULL,
    tokens_per_step   INTEGER NOT NULL,  -- all ranks together
    model_flops       REAL NOT NULL,     -- per rank and step, recomputation not counted
    mfu               REAL NOT NULL,     -- 0..1
    peak_bytes        INTEGER NOT NULL,  -- allocated, with the runtime overhead class
    peak_ps           INTEGER NOT NULL,
    peak_rank         INTEGER NOT NULL,
    peak_event        TEXT NOT NULL,     -- the instruction that reached the peak
    peak_unit         INTEGER REFERENCES name(id),
    peak_phase        INTEGER REFERENCES name(id),
    persistent_bytes  INTEGER NOT NULL,
    host_peak_bytes   INTEGER NOT NULL,
    capacity_bytes    INTEGER NOT NULL,  -- 0: unlimited
    contingency_bytes INTEGER NOT NULL,
    headroom_bytes    INTEGER NOT NULL,
    needed_low_bytes  INTEGER NOT NULL,  -- band of what is needed, without contingency
    needed_high_bytes INTEGER NOT NULL,
    fits              INTEGER CHECK (fits IN (0, 1)), -- the figure itself; NULL: unlimited
    verdict           INTEGER REFERENCES name(id),    -- fits, tight, does not fit
    -- Peaks of the caching allocator on rank 0, each its own; NULL where none was simulated.
    allocated_bytes   INTEGER,           -- rounded to blocks, without the runtime overhead
    active_bytes      INTEGER,           -- and released blocks that another stream still uses
    reserved_bytes    INTEGER            -- segments
);

-- Effective inputs, in the order of the schema of scenario files.
CREATE TABLE input (
    run     INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    section TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    origin  TEXT NOT NULL,   -- "default", "file.ini:12", "--set", "catalogue", "auto"
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

CREATE TABLE warning (
    run     INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    text    TEXT NOT NULL,
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- Shard units in order of first use.
CREATE TABLE unit (
    run                INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal            INTEGER NOT NULL,
    name               INTEGER NOT NULL REFERENCES name(id),
    elements           INTEGER NOT NULL,
    trainable_elements INTEGER NOT NULL,
    first_layer        INTEGER NOT NULL,
    last_layer         INTEGER NOT NULL,
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- Work on streams, in order of its end.
CREATE TABLE operation (
    run         INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal     INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    instruction INTEGER NOT NULL,            -- index in the tape
    step        INTEGER NOT NULL,            -- 0-based; -1: before the first
    micro_batch INTEGER,
    stream      INTEGER NOT NULL REFERENCES name(id),
    category    INTEGER NOT NULL REFERENCES name(id),
    kind        INTEGER NOT NULL REFERENCES name(id),
    phase       INTEGER NOT NULL REFERENCES name(id),
    unit        INTEGER REFERENCES name(id),
    start_ps    INTEGER NOT NULL,
    end_ps      INTEGER NOT NULL,
    exposed_ps  INTEGER NOT NULL,            -- this work's part of the exposed time; sums to it
    bytes       INTEGER NOT NULL,            -- message
    wire_bytes  INTEGER NOT NULL,            -- this rank puts on the link
    rule        INTEGER REFERENCES name(id), -- which rule found how long it takes alone
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- Memory where it changes: the class that changed and the total of its space after it.
CREATE TABLE memory (
    run         INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal     INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    instruction INTEGER NOT NULL,
    space       INTEGER NOT NULL REFERENCES name(id),
    class       INTEGER NOT NULL REFERENCES name(id),
    time_ps     INTEGER NOT NULL,  -- where the device is then, not the host that runs ahead
    delta_bytes INTEGER NOT NULL,
    class_bytes INTEGER NOT NULL,
    total_bytes INTEGER NOT NULL,
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- What the caching allocator holds on rank 0, where a figure changes.
CREATE TABLE allocator (
    run             INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal         INTEGER NOT NULL,
    instruction     INTEGER NOT NULL,
    time_ps         INTEGER NOT NULL,
    allocated_bytes INTEGER NOT NULL,
    active_bytes    INTEGER NOT NULL,
    reserved_bytes  INTEGER NOT NULL,
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- The device at its peak, and at the end of the step, by class (classes of 0 bytes left out).
CREATE TABLE peak (
    run   INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    class INTEGER NOT NULL REFERENCES name(id),
    bytes INTEGER NOT NULL,
    PRIMARY KEY (run, class)
) WITHOUT ROWID;

CREATE TABLE persistent (
    run   INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    class INTEGER NOT NULL REFERENCES name(id),
    bytes INTEGER NOT NULL,
    PRIMARY KEY (run, class)
) WITHOUT ROWID;

-- Buffers live at the peak, largest first.
CREATE TABLE live_buffer (
    run     INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    class   INTEGER NOT NULL REFERENCES name(id),
    role    INTEGER NOT NULL REFERENCES name(id),
    unit    INTEGER REFERENCES name(id),
    bytes   INTEGER NOT NULL,
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- The closed form, independent of the simulation: what a rank stores ...
CREATE TABLE ledger (
    run               INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal           INTEGER NOT NULL,
    class             INTEGER NOT NULL REFERENCES name(id),
    name              INTEGER NOT NULL REFERENCES name(id),
    dtype             INTEGER NOT NULL REFERENCES name(id),
    bytes_per_element REAL NOT NULL,
    copies            INTEGER NOT NULL,
    owners            INTEGER NOT NULL,      -- ranks that share one copy; 1: replicated
    elements          INTEGER NOT NULL,
    padding_bytes     INTEGER NOT NULL,
    persistent_bytes  INTEGER NOT NULL,
    evidence          INTEGER REFERENCES name(id),
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- ... and what else it may need: an upper bound, its parts need not coincide.
CREATE TABLE ledger_bound (
    run     INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    part    INTEGER NOT NULL REFERENCES name(id),
    bytes   INTEGER NOT NULL,
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- Collectives and transfers of the last step.
CREATE TABLE traffic (
    run        INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    kind       INTEGER NOT NULL REFERENCES name(id),
    phase      INTEGER NOT NULL REFERENCES name(id),
    count      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    wire_bytes INTEGER NOT NULL,
    busy_ps    INTEGER NOT NULL,             -- alone on the link
    PRIMARY KEY (run, kind, phase)
) WITHOUT ROWID;

-- How the works of the last step were priced: one row per kind, ranks of the group and rule.
CREATE TABLE price (
    run        INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    ordinal    INTEGER NOT NULL,
    category   INTEGER NOT NULL REFERENCES name(id),
    kind       INTEGER NOT NULL REFERENCES name(id),
    ranks      INTEGER NOT NULL,             -- of its group; 1: no collective
    rule       INTEGER REFERENCES name(id),
    count      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    wire_bytes INTEGER NOT NULL,
    busy_ps    INTEGER NOT NULL,             -- alone on the link or the device
    flops      REAL NOT NULL,
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;

-- Sweeps record summaries only.  `complete` is 0 while points are being written.
CREATE TABLE sweep (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    version  TEXT NOT NULL,
    source   TEXT,
    complete INTEGER NOT NULL CHECK (complete IN (0, 1))
);

CREATE TABLE sweep_input (
    sweep   INTEGER NOT NULL REFERENCES sweep(id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    section TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    origin  TEXT NOT NULL,
    PRIMARY KEY (sweep, ordinal)
) WITHOUT ROWID;

CREATE TABLE sweep_axis (
    sweep INTEGER NOT NULL REFERENCES sweep(id) ON DELETE CASCADE,
    axis  INTEGER NOT NULL,
    key   TEXT NOT NULL,                     -- "zero.stage"
    PRIMARY KEY (sweep, axis)
) WITHOUT ROWID;

-- A point that was refused has its reason in `error` and no figures.
CREATE TABLE sweep_point (
    sweep             INTEGER NOT NULL REFERENCES sweep(id) ON DELETE CASCADE,
    point             INTEGER NOT NULL,
    error             TEXT,
    step_ps           INTEGER,
    step_low_ps       INTEGER,
    step_high_ps      INTEGER,
    exposed_ps        INTEGER,
    tokens_per_step   INTEGER,
    tokens_per_rank   INTEGER,
    mfu               REAL,
    peak_bytes        INTEGER,
    persistent_bytes  INTEGER,
    host_peak_bytes   INTEGER,
    capacity_bytes    INTEGER,
    contingency_bytes INTEGER,
    headroom_bytes    INTEGER,
    needed_low_bytes  INTEGER,
    needed_high_bytes INTEGER,
    fits              INTEGER,
    verdict           INTEGER REFERENCES name(id),
    allocated_bytes   INTEGER,               -- as in run
    active_bytes      INTEGER,
    reserved_bytes    INTEGER,
    PRIMARY KEY (sweep, point)
) WITHOUT ROWID;

CREATE TABLE sweep_value (
    sweep INTEGER NOT NULL,
    point INTEGER NOT NULL,
    axis  INTEGER NOT NULL,
    value INTEGER NOT NULL REFERENCES name(id),
    PRIMARY KEY (sweep, point, axis),
    FOREIGN KEY (sweep, point) REFERENCES sweep_point(sweep, point) ON DELETE CASCADE,
    FOREIGN KEY (sweep, axis) REFERENCES sweep_axis(sweep, axis)
) WITHOUT ROWID;

CREATE TABLE sweep_peak (
    sweep INTEGER NOT NULL,
    point INTEGER NOT NULL,
    class INTEGER NOT NULL REFERENCES name(id),
    bytes INTEGER NOT NULL,
    PRIMARY KEY (sweep, point, class),
    FOREIGN KEY (sweep, point) REFERENCES sweep_point(sweep, point) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE VIEW run_summary AS
SELECT r.id AS run, r.name, r.runtime, r.model, r.stage, r.ranks,
       r.step_ps / 1e9 AS step_ms,
       r.step_low_ps / 1e9 AS step_low_ms, r.step_high_ps / 1e9 AS step_high_ms, g.text AS grade,
       r.exposed_ps / 1e9 AS exposed_ms,
       CASE WHEN r.step_ps > 0 THEN r.tokens_per_step * 1e12 / r.step_ps END AS tokens_per_s,
       r.mfu,
       r.peak_bytes / 1e9 AS peak_gb,
       r.peak_bytes / 1073741824.0 AS peak_gib,
       r.active_bytes / 1073741824.0 AS active_gib,
       r.reserved_bytes / 1073741824.0 AS reserved_gib,
       r.peak_ps / 1e9 AS peak_ms,
       u.text AS peak_unit, p.text AS peak_phase, r.peak_event,
       r.persistent_bytes / 1073741824.0 AS persistent_gib,
       CASE WHEN r.capacity_bytes > 0 THEN r.headroom_bytes / 1073741824.0 END AS headroom_gib,
       r.fits, v.text AS verdict
  FROM run r LEFT JOIN name u ON u.id = r.peak_unit LEFT JOIN name p ON p.id = r.peak_phase
       LEFT JOIN name v ON v.id = r.verdict LEFT JOIN name g ON g.id = r.grade;

CREATE VIEW memory_timeline AS
SELECT m.run, m.ordinal, m.rank, s.text AS space, m.time_ps, m.time_ps / 1e9 AS time_ms,
       c.text AS class, m.delta_bytes, m.class_bytes, m.total_bytes
  FROM memory m JOIN name s ON s.id = m.space JOIN name c ON c.id = m.class
 ORDER BY m.run, m.ordinal;

CREATE VIEW allocator_timeline AS
SELECT run, ordinal, time_ps, time_ps / 1e9 AS time_ms, allocated_bytes, active_bytes,
       reserved_bytes
  FROM allocator
 ORDER BY run, ordinal;

CREATE VIEW peak_composition AS
SELECT p.run, c.text AS class, p.bytes, p.bytes / 1073741824.0 AS gib,
       100.0 * p.bytes / r.peak_bytes AS percent
  FROM peak p JOIN run r ON r.id = p.run JOIN name c ON c.id = p.class
 ORDER BY p.run, p.bytes DESC, p.class;

CREATE VIEW peak_buffers AS
SELECT b.run, b.ordinal, c.text AS class, o.text AS role, u.text AS unit, b.bytes
  FROM live_buffer b JOIN name c ON c.id = b.class JOIN name o ON o.id = b.role
       LEFT JOIN name u ON u.id = b.unit
 ORDER BY b.run, b.ordinal;

CREATE VIEW operations AS
SELECT o.run, o.ordinal, o.rank, o.step, o.micro_batch, s.text AS stream, g.text AS category,
       k.text AS kind, p.text AS phase, u.text AS unit, o.start_ps, o.end_ps, o.exposed_ps,
       o.start_ps / 1e9 AS start_ms, o.end_ps / 1e9 AS end_ms, o.bytes, o.wire_bytes,
       w.text AS rule
  FROM operation o JOIN name s ON s.id = o.stream JOIN name g ON g.id = o.category
       JOIN name k ON k.id = o.kind JOIN name p ON p.id = o.phase
       LEFT JOIN name u ON u.id = o.unit LEFT JOIN name w ON w.id = o.rule
 ORDER BY o.run, o.ordinal;

CREATE VIEW exposed_by_unit AS
SELECT run, unit, phase, kind, count(*) AS operations, sum(exposed_ps) AS exposed_ps,
       sum(exposed_ps) / 1e9 AS exposed_ms, sum(end_ps - start_ps) / 1e9 AS busy_ms
  FROM operations
 WHERE category IN ('communication', 'copy')
 GROUP BY run, unit, phase, kind
 ORDER BY run, sum(exposed_ps) DESC, unit, phase, kind;

CREATE VIEW collectives AS
SELECT t.run, k.text AS kind, p.text AS phase, t.count, t.bytes, t.wire_bytes,
       t.busy_ps / 1e9 AS busy_ms
  FROM traffic t JOIN name k ON k.id = t.kind JOIN name p ON p.id = t.phase
 ORDER BY t.run, t.wire_bytes DESC, k.text, p.text;

-- Bus bandwidth as nccl-tests define it: bytes each rank puts on the link over the time alone.
CREATE VIEW prices AS
SELECT p.run, c.text AS category, k.text AS kind, p.ranks, r.text AS rule, p.count, p.bytes,
       p.wire_bytes, p.busy_ps / 1e9 AS busy_ms,
       CASE WHEN p.busy_ps > 0 THEN p.wire_bytes * 1e3 / p.busy_ps END AS bus_gb_per_s,
       CASE WHEN p.busy_ps > 0 THEN p.flops / p.busy_ps END AS tflop_per_s
  FROM price p JOIN name c ON c.id = p.category JOIN name k ON k.id = p.kind
       LEFT JOIN name r ON r.id = p.rule
 ORDER BY p.run, p.ordinal;

CREATE VIEW persistent_against_ledger AS
SELECT p.run, c.text AS class, p.bytes AS simulated_bytes,
       (SELECT sum(l.persistent_bytes) FROM ledger l
         WHERE l.run = p.run AND l.class = p.class) AS ledger_bytes
  FROM persistent p JOIN name c ON c.id = p.class
 ORDER BY p.run, p.bytes DESC, p.class;

CREATE VIEW sweep_table AS
SELECT p.sweep, p.point,
       (SELECT group_concat(setting, ' ')
          FROM (SELECT a.key || '=' || n.text AS setting
                  FROM sweep_value v JOIN sweep_axis a ON a.sweep = v.sweep AND a.axis = v.axis
                       JOIN name n ON n.id = v.value
                 WHERE v.sweep = p.sweep AND v.point = p.point ORDER BY v.axis)) AS "values",
       p.step_ps, p.step_ps / 1e9 AS step_ms, p.exposed_ps / 1e9 AS exposed_ms,
       CASE WHEN p.step_ps > 0 THEN p.tokens_per_step * 1e12 / p.step_ps END AS tokens_per_s,
       p.mfu, p.peak_bytes, p.peak_bytes / 1073741824.0 AS peak_gib,
       p.reserved_bytes / 1073741824.0 AS reserved_gib,
       CASE WHEN p.capacity_bytes > 0 THEN p.headroom_bytes / 1073741824.0 END AS headroom_gib,
       p.fits, v.text AS verdict, p.error
  FROM sweep_point p LEFT JOIN name v ON v.id = p.verdict
 ORDER BY p.sweep, p.point;

-- What points are ranked by: step time, or time per token where steps differ in tokens; and whether
-- they are ranked: those that fit, or all where none does.
CREATE VIEW sweep_merit AS
SELECT sweep, point, peak_bytes,
       min(tokens_per_rank) OVER w <> max(tokens_per_rank) OVER w AS is_per_token,
       CASE WHEN min(tokens_per_rank) OVER w = max(tokens_per_rank) OVER w THEN step_ps
            ELSE step_ps / max(tokens_per_rank, 1) END AS time_ps,
       coalesce(fits, 1) = max(coalesce(fits, 1)) OVER w AS is_ranked
  FROM sweep_point WHERE error IS NULL
WINDOW w AS (PARTITION BY sweep);

-- Ranked points that no other beats on peak and time; of equal ones the first.
CREATE VIEW pareto AS
SELECT t.*
  FROM sweep_table t
       JOIN (SELECT sweep, point, time_ps,
                    min(time_ps) OVER (PARTITION BY sweep ORDER BY peak_bytes, time_ps, point
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS best_ps
               FROM sweep_merit WHERE is_ranked) f
         ON f.sweep = t.sweep AND f.point = t.point
 WHERE f.best_ps IS NULL OR f.time_ps < f.best_ps
 ORDER BY t.sweep, t.peak_bytes;
