"""# Children of poor parents, district by district

Where do children of poor parents get ahead? One regression per district from one release, where
small districts borrow from the others, and a ranking that says how uncertain it is.

The table is simulated after the study of social mobility by R. Chetty and others: ranks of parents'
and children's incomes, 40 districts of 30 to 400 families, and a true line in each of them.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import noisewise as nw

rng = np.random.default_rng(8)
districts = [f"district {i:02d}" for i in range(40)]
families = rng.integers(30, 401, 40)
slope = rng.normal(0.35, 0.1, 40)
middle = rng.normal(0.48, 0.06, 40)
district = np.repeat(np.arange(40), families)
parents = rng.beta(2, 2, len(district))
children = middle[district] + slope[district] * (parents - 0.5) + rng.normal(0, 0.15, len(district))
people = pd.DataFrame(
    {"district": np.array(districts)[district], "parents": parents, "children": children}
)
people.sample(5, random_state=0)

# %% [markdown]
# ## The owner: one release for all districts
#
# Every family is in one district, so all districts can have the whole ε. How many families live in
# each is public.

# %%
release = nw.release.linear_regression(
    people,
    x=["parents"],
    y="children",
    bounds={"parents": (0, 1), "children": (0, 1)},
    groups={"district": districts},
    sizes="public",
    epsilon=2.0,
)
print(release.statement())

# %% [markdown]
# ## The analyst: alone and together
#
# `alone`, every district knows only its own noisy sums. With `pool=True` districts are taken as
# drawn from one population, which is learnt with them.

# %%
alone = nw.infer(release)
post = nw.infer(release, pool=True)
print(post.status)
post.population.summary()[["mean", "lower", "upper", "judgement"]].round(3)

# %% [markdown]
# The question is the expected rank of a child whose parents are at the 25th per cent: a place on
# each district's line.

# %%
at = {"parents": 0.25}
truth = middle - 0.25 * slope


def line(result):
    """Return draws of every district's line at the 25th per cent, (district, draw)."""
    flat = {name: draws.reshape(40, -1) for name, draws in result.draws.items()}
    return flat["parents"] * 0.25 + flat["intercept"]


found = {}
for words, result in (("alone", alone), ("together", post)):
    low, centre, high = np.quantile(line(result), [0.025, 0.5, 0.975], axis=1)
    found[words] = low, centre, high
    held = np.mean((low <= truth) & (truth <= high))
    print(
        f"{words}: intervals hold {held:.0%} of the true lines; half of them are wider than "
        f"{np.median(high - low):.2f}; half of the errors are above "
        f"{np.median(abs(centre - truth)):.3f}"
    )

# %%
order = np.argsort(truth)
figure, axes = plt.subplots(1, 2, figsize=(7, 6), sharex=True, sharey=True, layout="constrained")
for axis, (words, (low, centre, high)) in zip(axes, found.items(), strict=True):
    axis.hlines(range(40), low[order], high[order], color="#1f6f8b", lw=2, alpha=0.6)
    axis.plot(centre[order], range(40), "o", ms=3, color="#1f6f8b", label="posterior, 95 %")
    axis.plot(truth[order], range(40), "|", ms=9, mew=2, color="#d1793b", label="truth")
    axis.set(title=words, xlim=(0.1, 0.7), xlabel="expected rank of the child")
    axis.set_yticks([])
axes[0].set_ylabel("districts, from the lowest truth to the highest")
axes[1].legend(loc="lower right", fontsize=8)
figure.suptitle("Children of parents at the 25th per cent, by district")

# %% [markdown]
# ## A ranking that is honest
#
# Ranks are worked out draw by draw. Where intervals of two districts overlap, the release does not
# say which is ahead.

# %%
post.ranks(at=at).sort_values("rank").head(5).round(2)

# %% [markdown]
# And which districts lie above 0.45 for sure?

# %%
above = post.probability_above(0.45, at=at).sort_values("probability", ascending=False)
print(f"{(above['probability'] > 0.95).sum()} of 40 with probability above 95 %;")
print(f"in truth {(truth > 0.45).sum()} are above.")
above.head(8).round(2)

# %% [markdown]
# ## What it means
#
# Noise of one release would drown a small district by itself. Together they tell how much
# districts differ, and that is what a small one needs to know about itself: its interval is as wide
# as its own noisy sums and those of all others allow. An interval of a rank says how far the list
# may be read.
#
# ## What not to conclude
#
# That the first of the list is the best. The highest and the lowest are drawn towards the others,
# and their intervals miss more often than those of the rest: a list of extremes is where errors
# gather. Nor that districts *cause* these differences: families choose where they live. And
# pooling takes small districts to be like the others; where they differ more, intervals of small
# ones miss. More in [the guide to small areas](../howto-small-areas.md#what-to-know).
