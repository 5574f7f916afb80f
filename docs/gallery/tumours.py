"""# Malignant or benign: a logistic regression

How do the odds that a tumour is malignant change with what a microscope shows? A logistic
regression from the noisy sums of a linear one, an odds ratio that can be published, and one that
cannot.

The table is real: 569 biopsies from Wisconsin, which come with scikit-learn. It has been public for
thirty years, so nothing here protects anyone: the noise is for show.
"""

# %%
import numpy as np
from sklearn.datasets import load_breast_cancer

import noisewise as nw

table = load_breast_cancer(as_frame=True).frame
table = table.rename(columns={"mean texture": "texture", "mean radius": "radius"})
table["malignant"] = 1 - table["target"]
table[["texture", "radius", "malignant"]].describe().loc[["mean", "std", "min", "max"]].round(2)

# %% [markdown]
# ## The owner: sums of a linear regression
#
# `texture` is how much the grey of the picture varies, `radius` the mean radius of cell nuclei.
# Their bounds are what someone who knows such pictures would write down without seeing these. They
# also say something about shapes, so they should be natural ones and not far too wide.
#
# A table of 569 is small for this. With ε = 1 the noise would hide how much the columns vary, so
# the page uses ε = 4, which promises less: who gives even odds to a guess about one person can be
# 98 % sure of it afterwards.

# %%
release = nw.release.logistic_regression(
    table,
    x=["texture", "radius"],
    y="malignant",
    bounds={"texture": (5, 40), "radius": (5, 30)},
    epsilon=4.0,
)
release.save("tumours.json")
print(release.statement())

# %% [markdown]
# ## The analyst: texture
#
# A release of two covariates serves each alone, and both. First texture. A coefficient is in log
# odds per unit; `effects` turns it into what can be said in a sentence. `per` is the number of
# units to be compared: here 4, which is about a standard deviation.

# %%
texture = nw.infer("tumours.json", x=["texture"], y="malignant")
print(texture.status)
effect = texture.effects(per={"texture": 4}).loc["texture"]
print(
    f"4 more of texture: odds of malignancy times {effect['odds_ratio']:.1f} "
    f"(95 %: {effect['odds_ratio_lower']:.1f} to {effect['odds_ratio_upper']:.1f}),"
)
print(
    f"probability up by {effect['average_effect']:.2f} on average "
    f"({effect['average_effect_lower']:.2f} to {effect['average_effect_upper']:.2f})"
)

# %% [markdown]
# Odds are not probabilities: odds of 1 to 3 that are doubled, 2 to 3, take a probability from 25 to
# 40 %. The average effect is the change of the probability itself, averaged over the records, and
# usually the number that readers understand. It is also better known: noise that makes a steep
# slope steeper hardly changes it.
#
# The owner can set the curve beside the table, and beside maximum likelihood without privacy. The
# last tenth lies below both curves: that the curve is logistic is assumed, and no release of sums
# can show whether it is.

# %%
import matplotlib.pyplot as plt
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

grid = np.linspace(10, 34, 60)
slope, level = (texture.draws[name].ravel()[:, None] for name in ("texture", "intercept"))
low, middle, high = np.quantile(expit(level + slope * grid), [0.025, 0.5, 0.975], axis=0)
plain = LogisticRegression(C=np.inf).fit(table[["texture"]].to_numpy(), table["malignant"])
tenths = table.groupby(pd.qcut(table["texture"], 10))[["texture", "malignant"]].mean()

figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
axis.fill_between(grid, low, high, color="#1f6f8b", alpha=0.25, lw=0)
axis.plot(grid, middle, color="#1f6f8b", label="from the release, with 95 %")
axis.plot(grid, plain.predict_proba(grid[:, None])[:, 1], color="#777777", ls="--",
          label="maximum likelihood, without privacy")  # fmt: skip
axis.plot(tenths["texture"], tenths["malignant"], "o", color="#d1793b", label="tenths of the table")
axis.set(xlabel="texture", ylabel="share malignant", ylim=(0, 1))
axis.legend(fontsize=8, loc="upper left")
figure.suptitle("Probability that a tumour is malignant, by texture")
print(f"maximum likelihood: odds times {np.exp(4 * plain.coef_[0, 0]):.1f} for 4 more of texture")

# %% [markdown]
# ## What is assumed
#
# The release holds sums and products of columns, and no shapes. A logistic regression needs to know
# how texture is spread, and the model takes the law of largest entropy within the bounds that has
# the released mean and variance. Does that matter here? `shape_shift` says how far the coefficient
# moves, in posterior standard deviations, if texture is taken for a bell curve instead.

# %%
for name, shift in texture.shape_shift.items():
    print(f"{name}: {float(shift):.2f} posterior standard deviations")
print(*(texture.cautions or ["no cautions"]), sep="\n")

# %% [markdown]
# ## Where it breaks: radius
#
# Malignant nuclei are larger, so much so that radius alone nearly tells the two kinds apart.

# %%
radius = nw.infer("tumours.json", x=["radius"], y="malignant")
effect = radius.effects(per={"radius": 3.5}).loc["radius"]
print(
    f"3.5 more of radius: odds times {effect['odds_ratio']:.0f} "
    f"({effect['odds_ratio_lower']:.0f} to {effect['odds_ratio_upper']:.0f})"
)
print("\ncautions:")
for caution in radius.cautions:
    print("-", caution)

# %% [markdown]
# Hardly any record lies between surely benign and surely malignant, and only those between say how
# steep the curve is. Two moments of a column do not show them. So the sign can be believed, and
# that the effect is large; the odds ratio, or that its interval ends where it does, cannot. A
# larger ε would make the interval narrower, and would not make the assumed shape of the column any
# truer, on which the slope rests here.
#
# ## Both together

# %%
both = nw.infer("tumours.json", draws=500)
both.effects(per={"texture": 4, "radius": 3.5}).round(2)

# %%
print(*(both.cautions or ["no cautions"]), sep="\n")

# %% [markdown]
# ## What it means
#
# One release of sums answers "by how much do the odds change" for any of its columns. Where the
# effect is moderate, as that of texture, the interval allows for few records and for the noise, and
# it comes with nothing but the bounds as an assumption. Where the response is nearly separated,
# results say so before they say a number.
#
# ## What not to conclude
#
# That texture makes tumours malignant, or that a doctor should use this curve: 569 biopsies of one
# clinic are no sample of patients elsewhere. That a wide interval of an odds ratio means a weak
# effect: look at the average effect. And two clusters within one column, such as pictures from two
# microscopes, would make slopes too large
# ([measured](../evidence-generalized-linear.md#shapes)). More in
# [the guide](../howto-logistic.md).
