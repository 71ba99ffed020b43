// The studies: what they are about, what they ask for, and what suits a scenario.

const usual = ["workers.count=", "batch=", "servers.count=", "network.bandwidth=", "synchronisation=", "architecture=", "precision=", "servers.placement="];
const limits = ["deadline<=1d", "budget<=100", "memory", "minibatch<=2048", "workers<=16", "kinds<=1", "throughput>=100"];
const vary = { name: "vary", kind: "list", label: "Keys to vary", each: "Key and values", add: "Add a key", placeholder: "batch=16,32,64", usual };

const steps = (value) => [...new Set([0.5, 1, 2, 4].map((factor) => Math.max(1, Math.round(factor * value))))].join(",");

// Numbers of workers around those of the scenario; those of a plan have to divide.
function counts({ cluster, strategy }, first = cluster.workers.length > 1 ? 0 : 1) {
  const around = ({ count }) => (strategy.plan || count > 256 ? steps(count) : `${first}..${Math.max(2 * count, 8)}`);
  return cluster.workers.map((group, place) => `workers.${place}.count=${around(group)}`);
}

const batches = ({ strategy }) => (strategy.batch && !strategy.plan ? [`batch=${steps(strategy.batch)}`] : []);
const servers = ({ strategy }) => (strategy.architecture === "parameter-server" ? ["servers.count=1..4"] : []);

function nodes({ cluster }) {
  const workers = cluster.workers.reduce((sum, { count }) => sum + count, 0);
  return Math.max(1, Math.ceil(workers / (cluster.nodes?.workers ?? 1)));
}

export const specs = [
  {
    name: "layout",
    tab: "Plan",
    about: "How the plan splits the transformer: its ranks, the memory of its stages, and a step of its pipeline.",
    immediate: true,
    fits: (resolved) => Boolean(resolved.strategy.plan),
    fields: [
      {
        name: "role",
        kind: "choice",
        label: "Colour ranks by",
        options: [["", "what divides them"], ["pipeline", "pipeline stage"], ["tensor", "tensor rank"], ["context", "context rank"], ["data", "replica"], ["expert", "expert group"], ["node", "machine"]],
      },
    ],
  },
  {
    name: "plan",
    tab: "Best plan",
    action: "Find the best plan",
    about: "Tries every valid way to split the transformer over its machines.",
    fits: (resolved, transformer) => transformer,
    fields: [
      { name: "minimize", kind: "choice", label: "Minimise", options: [["time", "time"], ["cost", "cost"]] },
      { name: "offers", kind: "search", label: "Machines to choose from", placeholder: "dgx-a100, dgx-h100" },
      { name: "nodes", kind: "search", label: "Numbers of machines", placeholder: "16,32,64" },
      { name: "global_batch", kind: "number", label: "Sequences of a step" },
      { name: "tokens", kind: "number", label: "Tokens to train on" },
      { name: "deadline", kind: "search", label: "Deadline", placeholder: "30 d" },
      { name: "budget", kind: "number", label: "Budget" },
      { name: "may_fit", kind: "checkbox", label: "Also plans that barely fit" },
    ],
    suggested: (resolved) => ({ nodes: `${resolved.plan?.nodes ?? nodes(resolved)}`, global_batch: resolved.plan?.["global-batch"] ?? resolved.strategy.plan?.["global-batch"], tokens: resolved.plan?.tokens, deadline: resolved.plan?.deadline, budget: resolved.plan?.budget, may_fit: resolved.plan?.["may-fit"] }),
  },
  {
    name: "advise",
    tab: "What to measure",
    action: "Ask",
    about: "What a wrong choice among these machines costs on average, and which measurement is worth its price.",
    fits: (resolved) => Boolean(resolved.plan?.offers),
    shows: "How to measure it",
    fields: [],
  },
  {
    name: "check",
    tab: "Check",
    action: "Compare",
    about: "A running job against this forecast: is it as fast, who is slow, and when does it end? Give its log, or tables or flight recorder dumps of its ranks. They are not kept in the link.",
    fields: [
      { name: "files", kind: "files", label: "Log of the job, or files of its ranks" },
      { name: "deadline", kind: "search", label: "Deadline, from the first line", placeholder: "30 d" },
      { name: "steps_left", kind: "number", label: "Steps still to come" },
    ],
    suggested: (resolved) => ({ deadline: resolved.plan?.deadline }),
  },
  {
    name: "search",
    tab: "Search",
    action: "Search",
    about: "Finds the best configuration within constraints.",
    fields: [
      { name: "minimize", kind: "choice", label: "Minimise", options: [["time", "training time"], ["cost", "cost"], ["cost-time", "cost × time"], ["epoch", "epoch time"], ["iteration", "step time"]] },
      vary,
      { name: "subject_to", kind: "list", label: "Constraints", each: "Constraint", add: "Add a constraint", placeholder: "deadline<=1d", usual: limits },
    ],
    suggested(resolved) {
      const { data, price } = resolved;
      const priced = price && (price["worker-hour"] > 0 || price["server-hour"] > 0);
      return { minimize: data ? (priced ? "cost" : "time") : "iteration", vary: [...counts(resolved), ...batches(resolved), ...servers(resolved)] };
    },
  },
  {
    name: "sweep",
    tab: "Sweep",
    action: "Sweep",
    about: "Predicts every combination of values; one or two keys are drawn.",
    fields: [vary],
    suggested: (resolved) => ({ vary: [...counts(resolved, 1).slice(0, 1), ...batches(resolved)] }),
  },
  {
    name: "map",
    tab: "Map",
    action: "Map",
    about: "Epoch time and minibatch over nodes and batches, by a closed form; the scenario needs a data set.",
    fields: [
      { name: "nodes", kind: "search", label: "Numbers of nodes", placeholder: "up to those of the cluster" },
      { name: "batches", kind: "search", label: "Batches of a worker", placeholder: "up to what fits" },
      { name: "minibatch", kind: "search", label: "Admissible minibatches", placeholder: "all, or 104..172" },
    ],
    suggested: (resolved) => ({ nodes: `1..${Math.min(Math.max(nodes(resolved), 8), 64)}`, batches: resolved.strategy.batch ? steps(resolved.strategy.batch) : undefined }),
  },
  {
    name: "fuse",
    tab: "Fusion",
    action: "Compare rules",
    about: "Which gradients to send together: every rule side by side, and the best plan. For all-reduce.",
    fields: [],
  },
  {
    name: "replace",
    tab: "Layers",
    action: "Replace layers",
    about: "Layers whose communication cannot be hidden, and what others in their place would bring. For all-reduce.",
    fields: [
      { name: "from", kind: "search", label: "First layer to replace", placeholder: "the first fully connected one" },
      { name: "with", kind: "text", label: "Layers in their place (TOML)", placeholder: 'layers = [{ op = "global-average-pool" }]' },
    ],
  },
];
