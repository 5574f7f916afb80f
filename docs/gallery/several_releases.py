"""# Two releases of one table

A table is released in spring with a small ε, and again in autumn with what is left of the budget.
What does an analyst learn from both, and what have the people in it given up?

The table is simulated: 20,000 employees, their years in the firm and their pay per hour. One more
year goes with 0.35 more.
"""

# %%
import numpy as np
import pandas as pd

import noisewise as nw

rng = np.random.default_rng(5)
n = 20_000
years = np.clip(rng.gamma(2.0, 5.0, n), 0, 40)
pay = np.clip(18 + 0.35 * years + rng.normal(0, 5, n), 0, 80)
staff = pd.DataFrame({"years": years, "pay": pay})
staff.describe().loc[["mean", "std", "min", "max"]].round(1)

# %% [markdown]
# ## The owner: twice
#
# Releases of the same people add up. [A ledger](../howto-ledger.md) adds them up, and refuses what
# is beyond a cap; this page does without.


# %%
def released(epsilon):
    """Return a release of the table."""
    return nw.release.linear_regression(
        staff,
        x=["years"],
        y="pay",
        bounds={"years": (0, 40), "pay": (0, 80)},
        epsilon=epsilon,
    )


spring = released(0.1)
autumn = released(0.2)
print(spring.statement())
print(autumn.statement())

# %% [markdown]
# ## The analyst: each alone, and both
#
# Likelihoods of releases of the same records multiply. `exact` looks for the sums behind the noise
# of both. That they are of the same records is said by the analyst, or by the files, if one ledger
# counted them.

# %%
answers = {
    "spring, ε = 0.1": nw.infer(spring),
    "autumn, ε = 0.2": nw.infer(autumn),
    "both": nw.infer([spring, autumn], same_population=True),
}
rows = {
    words: post.summary().loc["years", ["mean", "lower", "upper"]]
    for words, post in answers.items()
}
table = pd.DataFrame(rows).T
table["width"] = table["upper"] - table["lower"]
table.astype(float).round(3)

# %%
import matplotlib.pyplot as plt

plain, error = np.polyfit(years, pay, 1, cov=True)
without = plain[0] + 1.96 * np.sqrt(error[0, 0]) * np.array([-1, 1])
figure, axis = plt.subplots(figsize=(6, 2.2), layout="constrained")
axis.hlines([3, 2, 1], table["lower"], table["upper"], color="#1f6f8b", lw=5)
axis.hlines(0, *without, color="#777777", lw=5)
axis.axvline(0.35, color="#d1793b", ls="--")
axis.set_yticks([3, 2, 1, 0], [*table.index, "without privacy"])
axis.set(ylim=(-0.6, 3.6), xlabel="more pay per hour for one more year")
figure.suptitle("95 % intervals from two releases; the dashed line is the truth")

# %% [markdown]
# ## What the people gave up
#
# Both releases together tell at most as much about any one of them as one release with the sum of
# both ε. An owner who knows at the start that ε = 0.3 will be spent does better to spend it at
# once: noise of one release is then smaller than that of two, weighted as well as may be.

# %%
post = nw.infer(released(0.3))
low, high = post.summary().loc["years", ["lower", "upper"]]
print(f"one release with ε = 0.3: {low:.3f} to {high:.3f}, {high - low:.3f} wide")

# %% [markdown]
# ## What it means
#
# An analyst should use all releases of a table that there are, in one call: the interval from both
# is, as a rule, narrower than that from either. Averaging the two answers by hand would forget that
# they come from the same people, whose scatter does not average out.
#
# ## What not to conclude
#
# That releasing twice is free because the second release only adds a little. The guarantee that
# people have is for the sum of both ε, whether or not anybody combines the files. And two releases
# of two *different* tables, such as last year's employees and this year's, are not releases of the
# same records: `same_population=True` would be wrong there, and nothing in the files would tell.
