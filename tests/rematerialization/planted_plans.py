"""Plans made without the planner, for `--planner` and `--plan-in`: run sequences with explicit drops, and random schedules."""


class Graph:
    """A graph file, indexed."""

    def __init__(self, graph):
        self.graph = graph
        self.nodes = graph["nodes"]
        self.position = {node["id"]: i for i, node in enumerate(self.nodes)}
        self.persistent = {tensor["id"] for tensor in graph["tensors"]}
        self.bytes = {tensor["id"]: tensor["bytes"] for tensor in graph["tensors"]}
        self.producer, self.readers, self.writers = {}, {}, {}
        for i, node in enumerate(self.nodes):
            for output in node["outputs"]:
                self.producer[output["id"]] = i
                self.bytes[output["id"]] = output["bytes"]
            for name in node["inputs"]:
                self.readers.setdefault(name, []).append(i)
            for name in node.get("writes", []):
                self.writers.setdefault(name, []).append(i)
        self.results = set(graph["results"])
        self.demands = {output["id"]: output.get("decision") for node in self.nodes for output in node["outputs"]}
        self.first_stage = next((i for i, node in enumerate(self.nodes) if node.get("phase") == "backward"), len(self.nodes))
        self.until = {}

    def find(self, op, phase="forward"):
        """Position of the first node of an operator."""
        return next(i for i, node in enumerate(self.nodes) if node["op"] == op and node.get("phase") == phase)

    def outputs(self, i):
        return [output["id"] for output in self.nodes[i]["outputs"]]

    def repeatable_until(self, i):
        """Stage before which node i may run again: the first writer of what it, or what makes its inputs, must see unwritten."""
        if i not in self.until:
            bound = len(self.nodes) + 1 if self.nodes[i].get("recompute", True) else 0
            for name in self.nodes[i]["inputs"]:
                if name in self.persistent:
                    bound = min([bound] + [w for w in self.writers.get(name, []) if w > i])
                else:
                    bound = min(bound, self.repeatable_until(self.producer[name]))
            self.until[i] = bound
        return self.until[i]


class Schedule:
    """Steps while they are made, with what is live and the figures that a plan claims."""

    def __init__(self, graph):
        self.graph, self.steps, self.live, self.ran = graph, [], set(), set()
        self.held = sum(graph.bytes[name] for name in graph.persistent)
        self.peak, self.cost = self.held, 0.0

    def run(self, i, drop=(), into=None):
        node, into = self.graph.nodes[i], into or {}
        made = [name for name in self.graph.outputs(i) if name not in drop]
        fresh = sum(self.graph.bytes[name] for name in made if name not in into)
        scratch = sum(self.graph.bytes[name] for name in drop) + node.get("workspace", 0)
        self.peak = max(self.peak, self.held + fresh + scratch)
        how = {key: value for key, value in (("into", into), ("drop", list(drop))) if value}
        self.steps.append(["run", node["id"], how] if how else ["run", node["id"]])
        self.live = (self.live - set(into.values())) | set(made)
        self.held += fresh
        self.cost += node["cost"]
        self.ran.add(i)

    def free(self, name):
        self.steps.append(["free", name])
        self.live.discard(name)
        self.held -= self.graph.bytes[name]

    def plan(self):
        base = sum(node["cost"] for node in self.graph.nodes)
        return {"format": "reprise-plan", "version": 1, "peak": self.peak, "cost": self.cost, "base_cost": base,
                "lower_bound": base, "bound_scope": "any", "status": "optimal" if self.cost == base else "feasible",
                "schedule": self.steps}


def plan_of_runs(graph, runs):
    """The plan of (node, dropped outputs) pairs; an instance lives until its last read before it is made anew."""
    last = {}  # (storage, instance) -> index of the run that reads it last
    instance = {}
    for k, (i, drop) in enumerate(runs):
        for name in graph.nodes[i]["inputs"]:
            if name in instance:
                last[name, instance[name]] = k
        for name in graph.outputs(i):
            if name not in drop:
                instance[name] = k
                last[name, k] = len(runs) if name in graph.results else k
    schedule = Schedule(graph)
    for k, (i, drop) in enumerate(runs):
        schedule.run(i, drop)
        for (name, _), end in last.items():
            if end == k and name in schedule.live:
                schedule.free(name)
    return schedule.plan()


def plan_at_random(graph, random, eagerness):
    """A valid schedule: after each node, storages that can be made again are freed with probability `eagerness`, what a node
    needs is made again right before it, outputs are dropped or put into inputs that end, at random. What the source wants kept
    or made again is."""
    schedule = Schedule(graph)
    end = len(graph.nodes)

    def uses(name, stage):
        """Stages from `stage` on at which a storage must be there; what is kept is there to the end, for further runs."""
        lasting = name in graph.results or graph.demands[name] == "keep"
        return [r for r in graph.readers.get(name, []) if r >= stage] + ([end] if lasting else [])

    def may_go(name, stage):
        later = uses(name, stage)
        return not later or (graph.demands[name] != "keep" and max(later) < graph.repeatable_until(graph.producer[name]))

    def must_go(name, stage):
        return stage == graph.first_stage and graph.demands[name] == "recompute"

    def in_place(i, needed, stage):
        into = {}
        for host, output in graph.nodes[i].get("inplace", []):
            taken = output in into or host in into.values()
            if not taken and host in schedule.live and host not in needed and may_go(host, stage) and random.random() < 0.5:
                into[output] = host
        return into

    def make(i, stage, needed, wanted):
        """Runs node i, what it reads first. `needed`: names that must stay live."""
        inputs = [name for name in graph.nodes[i]["inputs"] if name not in graph.persistent]
        for name in inputs:
            if name not in schedule.live:
                make(graph.producer[name], stage, needed | set(inputs), {name})
        again = i in schedule.ran
        drop = [name for name in graph.outputs(i) if again and (name in schedule.live or graph.demands[name] == "keep" or
                                                                  (name not in wanted and random.random() < 0.7))]
        after = stage if again else stage + 1
        schedule.run(i, drop, {output: host for output, host in in_place(i, needed, after).items() if output not in drop})

    def sweep(stage, held):
        for name in sorted(schedule.live):
            later = uses(name, stage)
            if name not in held and (not later or (may_go(name, stage) and
                                                       (must_go(name, stage) or random.random() < eagerness))):
                schedule.free(name)

    for i in range(end):
        make(i, i, set(), set(graph.outputs(i)))
        sweep(i + 1, set())
    for name in sorted(graph.results - schedule.live):
        if name not in schedule.live:
            make(graph.producer[name], end, graph.results, {name})
    for name in sorted(schedule.live - graph.results):
        schedule.free(name)
    return schedule.plan()
