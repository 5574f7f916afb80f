"""# A survey's shares, with missing answers

How many say yes, region by region, when some did not answer? One column of categories, one release,
and two kinds of not knowing: noise, which has an interval, and silence, which has none.

The survey is simulated, since no survey comes with the libraries used here: 3,430 people in five
regions, of whom 8 to 21 per cent give no answer.
"""

# %%
import numpy as np
import pandas as pd

import noisewise as nw

rng = np.random.default_rng(12)
asked = {"north": 900, "coast": 620, "hills": 340, "capital": 1500, "islands": 70}
said_yes = {"north": 0.52, "coast": 0.44, "hills": 0.61, "capital": 0.38, "islands": 0.57}
silent = {"north": 0.08, "coast": 0.12, "hills": 0.08, "capital": 0.21, "islands": 0.10}
region = np.repeat(list(asked), list(asked.values()))
chance = np.array([said_yes[r] for r in region])
answer = np.where(rng.random(len(region)) < chance, "yes", "no").astype(object)
answer[rng.random(len(region)) < [silent[r] for r in region]] = None
survey = pd.DataFrame({"region": region, "answer": answer})
survey.sample(5, random_state=1)

# %% [markdown]
# ## The owner: a missing answer is an answer
#
# Leaving the silent out would make the number of answers a secret that the noise has to hide too.
# So they are counted: `fill` says which category stands for a gap. How many people were asked in
# each region is public, as it is in most surveys, and everyone is in one region, so that each
# region has the whole ε.

# %%
answers = ["yes", "no", "no answer"]
release = nw.release.exponential_family(
    survey,
    column="answer",
    family="categorical",
    levels=answers,
    fill="no answer",
    groups={"region": list(asked)},
    sizes="public",
    epsilon=0.5,
)
release.save("survey.json")
print(release.statement())
released = release.table().set_index(["group", "statistic"])["value"].unstack()
released.columns = [name.removeprefix("answer=") for name in released.columns]
released = released.loc[list(asked), answers]
released["asked"] = list(asked.values())
released.astype(int)

# %% [markdown]
# The three counts of a region do not add up to the number of people who were asked there: each has
# noise of its own.
#
# ## The analyst: shares of all, and of those who answered

# %%
post = nw.infer("survey.json")
print(post.status)
share = {name: post.draws[f"p[{name}]"].reshape(len(asked), -1) for name in answers}


def told(draws):
    """Return means and 95 % intervals of draws, one row per region."""
    low, high = np.quantile(draws, [0.025, 0.975], axis=1)
    return pd.DataFrame(
        {"mean": draws.mean(axis=1), "lower": low, "upper": high}, index=list(asked)
    )


of_answers = told(share["yes"] / (share["yes"] + share["no"]))
of_answers["wider"] = (of_answers["upper"] - of_answers["lower"]) / (
    2
    * 1.96
    * np.sqrt(of_answers["mean"] * (1 - of_answers["mean"]))
    / np.sqrt(released["asked"] * (1 - told(share["no answer"])["mean"]))
)
print("yes, among those who answered; wider: times the usual interval of so many answers")
of_answers.round(3)

# %% [markdown]
# Every quantity is worked out draw by draw, so that its interval allows for the noise of all the
# counts in it. In the large regions the interval is hardly wider than the usual one, which knows no
# noise; on the islands, where 70 were asked, privacy costs a good part of it.
#
# ## Those who did not answer
#
# They may have meant anything. Without an assumption about them, the share of yes among *all* lies
# between two ends: none of the silent meant yes, or all did.

# %%
import matplotlib.pyplot as plt

lowest, highest = told(share["yes"]), told(share["yes"] + share["no answer"])
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
places = np.arange(len(asked))[::-1]
axis.hlines(places, lowest["lower"], highest["upper"], color="#bbbbbb", lw=8)
axis.hlines(places, of_answers["lower"], of_answers["upper"], color="#1f6f8b", lw=8)
axis.plot(list(said_yes.values()), places, "|", ms=14, mew=2.5, color="#d1793b")
axis.set_yticks(places, list(asked))
axis.set(xlabel="share of yes", xlim=(0.2, 0.85), ylim=(-0.5, 4.5))
figure.suptitle("Share of yes: the silent like the others (blue), or anything (grey)")

# %% [markdown]
# Blue takes the silent to be like those who answered in their region; the orange line is the truth
# of this simulation, in which they are. Grey takes them for anything. In the capital, where one in
# five is silent, that matters far more than privacy does.
#
# ## All regions together
#
# Regions are weighted by their population, which is public, and not by how many were asked.

# %%
population = np.array([310, 240, 150, 420, 30])
weights = population / population.sum()
together = np.tensordot(weights, share["yes"] / (share["yes"] + share["no"]), axes=1)
low, high = np.quantile(together, [0.025, 0.975])
truth = weights @ list(said_yes.values())
print(f"all regions: {together.mean():.3f} say yes (95 %: {low:.3f} to {high:.3f})")
print(f"in truth {truth:.3f}")

# %% [markdown]
# ## What it means
#
# At ε = ½ a region with a few hundred answers loses little to privacy. 95 % means: of many surveys
# that are drawn, released and analysed like this one, about 95 in 100 intervals hold the region's
# share, where people who were asked are drawn at random from its population.
#
# ## What not to conclude
#
# That the blue intervals allow for silence: they take the silent to be like the others, and no
# interval of any method tests that. Nor that the islands differ from the coast: compare their
# intervals first. And the model takes people for drawn one by one with equal chances; if households
# or streets were drawn together, intervals are too narrow, as they would be without privacy. Many
# small regions are better [pooled](../howto-small-areas.md), as shares of yes or no.
