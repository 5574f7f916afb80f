"""# How much budget does a question need?

Before anything is spent: what will analysts get at each ε, which ε gives an interval that is
narrow enough, and is the method calibrated for a release like this one?

No table is read on this page. A plan simulates records from what the owner believes of them.
"""

# %%
import noisewise as nw

n = 5000


def settings(epsilon):
    """Return the release as it would be made, without data."""
    return nw.release.linear_regression(
        nw.release.Blank(n),
        x=["age", "member"],
        y="wage",
        bounds={"age": (18, 68), "member": (0, 1), "wage": (0, 60)},
        epsilon=epsilon,
    )


# %% [markdown]
# ## What is believed
#
# Ages are spread evenly, three in ten are members of a union, a year of age goes with 0.2 more per
# hour and membership with 2. What is not said follows from the bounds.

# %%
guesses = {
    "age": "uniform",
    "member": {0: 0.7, 1: 0.3},
    "slope:age": 0.2,
    "slope:member": 2.0,
    "sigma": 8.0,
}
plan = nw.plan(
    settings, n, [0.3, 1.0, 3.0], guesses=guesses, trials=20, width={"age": 0.1, "member": 2.0}
)
for parameter in ("age", "member"):
    for epsilon in plan.epsilons:
        row = plan.row(epsilon, "exact", parameter)
        print(
            f"{parameter:7} epsilon {epsilon:g}: intervals {row.width:.3g} wide, "
            f"without privacy {plan.without[parameter]:.3g}"
        )
print(*plan.warnings, sep="\n")

# %% [markdown]
# ## Which ε is enough?
#
# The owner wants the slope of age to 0.05 either way, and that of membership to 1.

# %%
for target in plan.targets:
    print(target.words)

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
for axis, parameter in zip(axes, ("age", "member"), strict=True):
    for method, colour in (("exact", "#1f6f8b"), ("naive", "#d1793b")):
        widths = [plan.row(e, method, parameter).width for e in plan.epsilons]
        axis.plot(plan.epsilons, widths, "o-", color=colour, label=method)
    axis.axhline(plan.without[parameter], color="#777777", ls=":", label="without privacy")
    axis.set(title=f"slope of {parameter}", xscale="log", ylim=(0, None), xlabel="ε")
    axis.set_xticks(plan.epsilons, [f"{epsilon:g}" for epsilon in plan.epsilons])
    axis.minorticks_off()
axes[0].set_ylabel("width of 95 % intervals")
axes[0].legend(fontsize=8)
figure.suptitle("What each ε buys")

# %% [markdown]
# The narrow intervals of `naive`, which takes the noisy sums for exact, are no gain, as a check
# shows.

# %% [markdown]
# ## Is the method right for such a release?
#
# A check draws truths from the prior, simulates a release of each and counts how often intervals
# hold the truth.

# %%
check = nw.check(settings(1.0), ["exact", "naive"], trials=50)
for method in ("exact", "naive"):
    print(f"{method}: {check.of(method).verdict}")

# %% [markdown]
# ## What it means
#
# Where the curve of `exact` lies far above the dotted line, more budget buys narrower intervals;
# where it nearly touches, only more people would.
# More in [how to choose ε](../howto-epsilon.md).
#
# ## What not to conclude
#
# That the real release will give just these widths. A plan is as good as the guess: try a second
# one. Widths move with it, the order of the budgets hardly does. Nor does a check see whether the
# real table follows the model: its records are simulated from it. And what a small ε is worth to
# the people in the table is not on this page: that is decided by whoever answers for the data.
