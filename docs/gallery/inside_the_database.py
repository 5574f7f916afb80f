"""# A release inside PostgreSQL and Spark

The table stays where it is: the engine is asked for sums, and a handful of whole numbers leave it.
Do different engines give the same numbers, and the same guarantee?

The table is real and small: 442 patients with diabetes, which come with scikit-learn. It has long
been public, so that nothing here protects anyone: the noise is for show.
"""

# %%
import os
import shutil

import pandas as pd
from sklearn.datasets import load_diabetes

import noisewise as nw

frame = load_diabetes(as_frame=True, scaled=False).frame[["bmi", "bp", "target"]]
patients = frame.rename(columns={"bp": "pressure", "target": "progression"})
patients.describe().loc[["count", "mean", "min", "max"]].round(1)

# %% [markdown]
# ## Into PostgreSQL
#
# In real life the table is there already. Here it is copied into a throw-away server whose address
# is in `GALLERY_POSTGRES`; set it to a database of yours to run this yourself. A source is a URL
# with the name of the table after `#`.

# %%
sources = {"data frame": patients}
if "GALLERY_POSTGRES" in os.environ:
    import psycopg

    address = os.environ["GALLERY_POSTGRES"]
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(
            "create table patients"
            " (bmi double precision, pressure double precision, progression double precision)"
        )
        with cursor.copy("copy patients from stdin") as copy:
            for record in patients.itertuples(index=False):
                copy.write_row(record)
    sources["PostgreSQL"] = address + "#patients"
else:
    print("There is no PostgreSQL on this machine: that part of the page is left out.")

# %% [markdown]
# ## Into Spark
#
# A real one, in this process, with a Java. Any table that Ibis reaches is a source.

# %%
if shutil.which("java") or "JAVA_HOME" in os.environ:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    import ibis
    from pyspark.sql import SparkSession

    patients.to_parquet("patients.parquet")
    words = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    session = SparkSession.builder.master("local[2]").config(map=words).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.read.parquet(os.path.abspath("patients.parquet")).createOrReplaceTempView("patients")
    sources["Spark"] = ibis.pyspark.connect(session).table("patients")
else:
    print("There is no Java on this machine: the part about Spark is left out.")
print("sources:", ", ".join(sources))

# %% [markdown]
# ## The same release from each
#
# The words are the same, whatever the source. Each call draws its own noise, so that the published
# numbers differ; the guarantee and the size of the noise do not.

# %%
question = {
    "x": ["bmi", "pressure"],
    "y": "progression",
    "bounds": {"bmi": (15, 45), "pressure": (50, 150), "progression": (0, 350)},
}
releases = {
    name: nw.release.linear_regression(source, **question, epsilon=2.0)
    for name, source in sources.items()
}
print({release.statement() for release in releases.values()})
pd.DataFrame(
    {name: release.table().set_index("statistic")["value"] for name, release in releases.items()}
).assign(noise_scale=releases["data frame"].table()["noise_scale"].to_numpy()).round(1)

# %% [markdown]
# ## Is it the same underneath?
#
# To see that, the noise must go. Nobody should do this with a table that needs protection: ε is so
# large here that the noise rounds to nothing, and what is left are the sums themselves, which the
# release gives back exactly as the engine had them. Each column is put on a lattice of whole
# numbers first and summed there, so that no order of adding, and no engine, makes a difference.

# %%
bare = {
    name: nw.release.linear_regression(source, **question, epsilon=1e12, large_epsilon=True)
    for name, source in sources.items()
}
sums = pd.DataFrame(
    {name: release.table().set_index("statistic")["value"] for name, release in bare.items()}
)
same = (sums.nunique(axis="columns") == 1).all()
print("every source gives the same sums, to the last bit:", same)
sums.round(6)

# %% [markdown]
# ## What is refused
#
# A view that keeps some rows only makes the number of its rows a secret. As long as that number is
# to be published, which is the default, such a table is refused before anything is spent. `where=`
# with `neighbours="add-remove"` is the way ([how](../howto-engines.md#some-of-the-records)).

# %%
if "PostgreSQL" in sources:
    with psycopg.connect(address) as connection:
        connection.execute("create view heavy as select * from patients where bmi > 30")
    try:
        nw.release.linear_regression(address + "#heavy", **question, epsilon=2.0)
    except nw.NoisewiseError as error:
        print(error)

# %%
some = {
    name: nw.release.linear_regression(
        source, **question, epsilon=2.0, where="bmi > 20", neighbours="add-remove"
    )
    for name, source in sources.items()
}
for name, release in some.items():
    counted = release.table().set_index("statistic").loc["n"]
    n, noise = counted["value"], counted["noise_scale"]
    print(f"{name}: {release.where}, n = {n:.0f}, with noise of scale {noise:.0f}")

# %% [markdown]
# ## The analyst does not see the difference
#
# A release file does not say which engine made it.

# %%
rows = {
    name: nw.infer(release).summary().loc["bmi", ["mean", "lower", "upper"]]
    for name, release in releases.items()
}
pd.DataFrame(rows).T.astype(float).round(1)

# %%
if "Spark" in sources:
    session.stop()

# %% [markdown]
# ## What it means
#
# Where a table lives is a matter of convenience. Sums run inside the engine, the noise is drawn in
# the owner's Python, and the guarantee is the same sentence. Intervals differ because each release
# has noise of its own.
#
# ## What not to conclude
#
# That three releases of one table cost as little as one: here they would cost three times ε, which
# [a ledger](../howto-ledger.md) would have counted. And that the engine protects anyone: who may
# ask it for other sums, or for the sums without the noise, sees everything.
