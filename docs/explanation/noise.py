"""# What the noise does to a regression

Differential privacy adds noise to the sums that a regression is worked out from. What happens to
the line, and to the interval that comes with it, if nobody takes the noise into account, and what
if somebody does? In pictures.

The table is real: body mass index and the progression of diabetes a year later of 442 patients,
which come with scikit-learn. It has long been public: the noise here is for show.
"""

# %%
import numpy as np
from sklearn.datasets import load_diabetes

import noisewise as nw

patients = load_diabetes(as_frame=True, scaled=False).frame[["bmi", "target"]]
patients = patients.rename(columns={"target": "progression"})
truth = np.polyfit(patients["bmi"], patients["progression"], 1)
print(f"slope of all patients by least squares: {truth[0]:.2f} per unit of the index")

# %% [markdown]
# ## A hundred studies
#
# To see what chance does, the study is repeated a hundred times: each time 442 patients are drawn
# with replacement from the table, whose own slope is then the truth. The hundred samples are
# released as a hundred groups of one release, each with noise of its own and all of ε = 1.

# %%
rng = np.random.default_rng(3)
limits = {"bmi": (15, 45), "progression": (0, 350)}


def studies(number, n):
    """Return that many samples of n patients, one below the other."""
    drawn = patients.iloc[rng.integers(0, len(patients), number * n)].reset_index(drop=True)
    return drawn.assign(study=np.repeat(np.arange(number), n))


def released(table, epsilon):
    """Return a release with one group per study."""
    return nw.release.linear_regression(
        table,
        x=["bmi"],
        y="progression",
        bounds=limits,
        groups={"study": range(table["study"].max() + 1)},
        sizes="public",
        epsilon=epsilon,
    )


hundred = studies(100, 442)
release = released(hundred, 1.0)
print(release.statement())

# %% [markdown]
# ## A cloud of lines
#
# Left, least squares on each sample: lines differ because patients do. Right, the same arithmetic
# on the noisy sums of the same samples.

# %%
import matplotlib.pyplot as plt

centre = {name: np.mean(pair) for name, pair in limits.items()}
half = {name: (pair[1] - pair[0]) / 2 for name, pair in limits.items()}


def least_squares(sums, n):
    """Return slope and intercept by sums of columns in [-1, 1], in the user's units."""
    x, y = sums["bmi"] / n, sums["progression"] / n
    slope = (sums["bmi*progression"] / n - x * y) / (sums["bmi*bmi"] / n - x**2)
    level = half["progression"] * (y - slope * x) + centre["progression"]
    slope = slope * half["progression"] / half["bmi"]
    return np.column_stack([slope, level - slope * centre["bmi"]])


sums = release.table().pivot(index="group", columns="statistic", values="value")
noisy = least_squares(sums, 442)
plain = np.array([np.polyfit(g["bmi"], g["progression"], 1) for _, g in hundred.groupby("study")])

grid = np.array([18, 42])
figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), sharey=True, layout="constrained")
for axis, lines, words in zip(
    axes, (plain, noisy), ("without noise", "from noisy sums"), strict=True
):
    axis.plot(patients["bmi"], patients["progression"], ".", ms=2, color="#bbbbbb")
    axis.plot(
        grid, lines[:, :1].T * grid[:, None] + lines[:, 1], color="#1f6f8b", lw=0.6, alpha=0.6
    )
    axis.plot(grid, truth[0] * grid + truth[1], color="#d1793b", lw=2)
    axis.set(title=words, xlabel="body mass index", xlim=(17, 43), ylim=(0, 350))
axes[0].set_ylabel("progression")
figure.suptitle("A hundred studies; the table's own line in orange")
middle = {
    words: np.quantile(lines[:, 0], [0.25, 0.75])
    for words, lines in (("without noise", plain), ("from noisy sums", noisy))
}
for words, (low, high) in middle.items():
    print(f"{words}: the middle half of the slopes lies between {low:.1f} and {high:.1f}")

# %% [markdown]
# The noise adds a second reason for lines to differ, here the larger one.
#
# ## Intervals that are too narrow
#
# Who takes the noisy sums for exact ones works out an interval for the first reason only (`naive`).
# `exact` has both reasons in its model. Thirty of the hundred, with the intervals that miss the
# table's slope in orange:

# %%
answers = {method: nw.infer(release, method) for method in ("naive", "exact")}
ends = {
    method: np.quantile(post.draws["bmi"].reshape(100, -1), [0.025, 0.975], axis=1)
    for method, post in answers.items()
}
figure, axes = plt.subplots(1, 2, figsize=(7, 4.2), sharey=True, layout="constrained")
for axis, (method, (low, high)) in zip(axes, ends.items(), strict=True):
    held = (low <= truth[0]) & (truth[0] <= high)
    colours = np.where(held, "#1f6f8b", "#d1793b")[:30]
    axis.hlines(range(30), low[:30], high[:30], color=colours, lw=2)
    axis.axvline(truth[0], color="#777777", ls="--")
    axis.set(title=f"{method}: {held.sum()} of 100 hold it", xlabel="slope", xlim=(-10, 35))
    axis.set_yticks([])
    print(f"{method}: median width {np.median(high - low):.1f}, {held.sum()} of 100 hold the truth")
figure.suptitle("95 % intervals of the slope; the dashed line is the truth")

# %% [markdown]
# What `naive` gives is no 95 % interval, and nothing in its output says so: the sums look like any
# others, only with decimals. The method that knows the noise gives intervals that are as wide as
# the noise makes them. In six settings with simulated truths, 10 to 1,000 records and ε of 0.1 and
# 1, its 95 % intervals held the slope in 94 to 96 % of the trials, and those of `naive` in 2 to
# 28 % ([measured](../evidence-regression.md#calibrated)).
#
# ## Does noise draw slopes towards zero?
#
# In textbooks on errors in variables it does: if every *record* is noisy, the covariate seems to
# vary more than it does, and the slope comes out too small, however many records there are. That is
# what happens if people blur their own answers (local privacy), and it is why noise is added to
# *sums* here. A sum's noise is as often above zero as below, so that slopes scatter but are not
# shrunk. To compare both, at ε = 10 for the records and ε = 1 for the sums (the noise of the
# records is NumPy's, of the size that Laplace noise would need):

# %%
blurred = hundred[["bmi", "progression"]].to_numpy()
box = np.array([half["bmi"], half["progression"]])
blurred = (
    blurred + rng.laplace(0, 4 / 10, blurred.shape) * box
)  # a record moves by 2 in each column
on_records = [np.polyfit(*records.T, 1)[0] for records in blurred.reshape(100, 442, 2)]
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
bins = np.linspace(-2, 25, 55)
for slopes, words, colour in (
    (on_records, "noise on records, ε = 10", "#d1793b"),
    (noisy[:, 0], "noise on sums, ε = 1", "#1f6f8b"),
):
    axis.hist(
        slopes, bins, color=colour, alpha=0.6, label=f"{words}: median {np.median(slopes):.1f}"
    )
axis.axvline(truth[0], color="#777777", ls="--", label=f"truth: {truth[0]:.1f}")
axis.set(xlabel="slope by least squares", ylabel="studies")
axis.legend(fontsize=8)
figure.suptitle("Noise on records draws slopes to zero, noise on sums scatters them")

# %% [markdown]
# Slopes from sums are not *quite* centred on the truth either: the noisy sum of squares is a
# divisor, and where noise may bring it near zero a few slopes become huge, or change their sign.
# Methods that repair this by adding to the divisor (ridge regression, as AdaSSP does) pay for it by
# drawing slopes towards zero. `exact` does neither: where the noise hides how much a covariate
# varies, its interval becomes very wide, and its `status` names the column.
#
# ## How the width grows
#
# Too few people make an interval as wide as $1/\sqrt n$. Noise of sums makes it as wide as
# $1/(n\varepsilon)$: the same noise, whatever n is, beside sums that grow with n. So noise is what
# counts in small tables, and it loses to chance as tables grow.

# %%
budgets = [0.5, 1, 2, 5, 10, 30]
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
for n, colour in ((442, "#1f6f8b"), (4420, "#d1793b")):
    table = studies(20, n)
    widths = []
    for epsilon in budgets:
        post = nw.infer(released(table, epsilon), draws=500)
        low, high = np.quantile(post.draws["bmi"].reshape(20, -1), [0.025, 0.975], axis=1)
        widths.append(np.median(high - low))
    x, y = patients["bmi"], patients["progression"]
    error = (y - np.polyval(truth, x)).std() / x.std() / np.sqrt(n)
    axis.loglog(budgets, widths, "o-", color=colour, label=f"{n:,} patients")
    axis.axhline(2 * 1.96 * error, color=colour, ls=":")
    print(
        n,
        "patients:",
        *(f"{width:.2f} (ε = {e})" for e, width in zip(budgets, widths, strict=True)),
    )
axis.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
ticks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
axis.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
axis.minorticks_off()
axis.set(xlabel="ε", ylabel="median width of 95 % intervals")
axis.legend(fontsize=8)
figure.suptitle("Width and ε; dotted: without noise")

# %% [markdown]
# Where a curve falls as $1/\varepsilon$, the interval is mostly noise: twice the budget, or twice
# the people, about halves it, and tighter [bounds](../howto-bounds.md) help too. Where it has
# reached its dotted line, privacy costs nothing, and only more people would help. `times_wider` in
# every summary says where a release stands. At the left end of the upper curve widths grow faster
# than the noise: there it hides how much the index varies among the patients.
#
# ## In short
#
# | | slope | 95 % interval |
# |---|---|---|
# | noise on records, ignored | drawn to zero, for every n | in the wrong place |
# | noise on sums, ignored (`naive`) | scattered about the truth | far too narrow |
# | noise on sums, modelled (`exact`) | scattered about the truth | for noise and chance |
#
# What "modelled" means is told in [what "exact" means](exact.md), what may still go wrong in
# [when not to trust it](when-not-to-trust.md).
