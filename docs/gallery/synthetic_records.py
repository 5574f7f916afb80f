"""# Synthetic records from a few tables

Someone wants records to work with, not coefficients. The owner publishes contingency tables of
pairs of columns with noise; a graphical model is learnt from them, and draws records. How near do
tables of drawn records come to those of the people?

The table is simulated: 30,000 people with region, age, education and work, where work depends on
education and age, and education on age.
"""

# %%
import numpy as np
import pandas as pd

import noisewise as nw

rng = np.random.default_rng(2)
n = 30_000
levels = {
    "region": ["north", "south", "east", "west"],
    "age": ["18-34", "35-54", "55-64"],
    "education": ["school", "vocational", "degree"],
    "work": ["no", "part", "full"],
}
region = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
age = rng.choice(3, n, p=[0.4, 0.4, 0.2])
share = np.array([[0.3, 0.3, 0.4], [0.3, 0.4, 0.3], [0.4, 0.4, 0.2]])
education = (rng.random((n, 1)) > share[age].cumsum(axis=1)).sum(axis=1)
full = 0.35 + 0.12 * education + np.array([0, 0.1, -0.15])[age]
chance = np.column_stack([0.6 * (1 - full), 0.4 * (1 - full), full])
work = (rng.random((n, 1)) > chance.cumsum(axis=1)).sum(axis=1)
codes = {"region": region, "age": age, "education": education, "work": work}
people = pd.DataFrame({c: np.array(levels[c])[v] for c, v in codes.items()})
people.head()

# %% [markdown]
# ## The owner: four tables
#
# The tables say which pairs of columns the model can tie together: age and education, education
# and work, age and work, region and age.

# %%
release = nw.release.graphical_model(
    people,
    cliques=[("age", "education"), ("education", "work"), ("age", "work"), ("region", "age")],
    levels=levels,
    epsilon=0.5,
)
print(release.statement())

# %% [markdown]
# ## The analyst: a model that accounts for the noise
#
# Noisy tables contradict each other, and have cells below zero. The method `cgm` finds the model
# whose tables, with such noise, would look like these.

# %%
model = nw.infer(release)
print(model.status)
drawn = model.sample(30_000, seed=1)
drawn.head()

# %% [markdown]
# ## How near are the tables?
#
# Shares in full-time work by education, and by education and age together. The last is a table of
# three columns, which was never released.


# %%
def in_full_time(table, by):
    """Return the share in full-time work, by these columns."""
    return (table["work"] == "full").groupby([table[c] for c in by]).mean()


near = {}
for by in (["education"], ["age"], ["age", "education"], ["region"]):
    both = pd.DataFrame({"people": in_full_time(people, by), "drawn": in_full_time(drawn, by)})
    near[" and ".join(by)] = both
    print(
        f"by {' and '.join(by)}: largest difference {abs(both['people'] - both['drawn']).max():.3f}"
    )
near["age and education"].round(3)

# %%
import matplotlib.pyplot as plt

colours = ("#1f6f8b", "#d1793b", "#777777", "#7a9e3a")
figure, axis = plt.subplots(figsize=(5, 4.2), layout="constrained")
for (words, both), colour in zip(near.items(), colours, strict=True):
    axis.plot(both["people"], both["drawn"], "o", ms=5, color=colour, label=f"by {words}")
ends = [0.15, 0.8]
axis.plot(ends, ends, color="#bbbbbb", lw=1, zorder=0)
axis.set(xlabel="share in full-time work: people", ylabel="drawn records")
axis.legend(fontsize=8)
axis.set_title("Drawn records beside the people they stand for")

# %% [markdown]
# ## What it means
#
# Drawn records are as private as the tables: nobody's record is among them, and drawing more costs
# nothing. They hold what the tables hold, and what follows from it.
#
# ## What not to conclude
#
# Two columns without a common table, as region and work, go together in drawn records only as far
# as age makes them, whatever they do among people: nothing can be learnt from drawn records about
# such a pair. And they are a point estimate. A regression on 30,000 drawn records gives intervals
# as if 30,000 people had been asked and nothing had been hidden, which is wrong twice. Whoever
# needs intervals takes them from the model itself (`method="bayes"`), or from sums that were
# released for the question.
