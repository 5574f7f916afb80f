"""Calls that cannot work: a line that ends in ``# wrong: CODE`` must be an error of that kind."""

from __future__ import annotations

import noisewise as nw

BOUNDS = {"age": (18, 90), "income": (0, 250_000)}

nw.release.linear_regression("people.csv", x="age", y="income", bounds=BOUNDS)  # wrong: call-arg
nw.release.linear_regression("p.csv", x="age", y="income", epsilon=1, delt=1e-6)  # wrong: call-arg
nw.release.linear_regression("p.csv", x="age", y="income", epsilon="1")  # wrong: arg-type
nw.release.linear_regression("p.csv", x="a", y="b", bounds=(0, 1), epsilon=1)  # wrong: arg-type
nw.release.linear_regression("p.csv", x="a", y="b", bounds={"a": 1}, epsilon=1)  # wrong: dict-item
nw.release.linear_regression("p.csv", x="a", y="b", epsilon=1, sizes=True)  # wrong: arg-type
nw.release.graphical_model("p", cliques=[], levels={}, split={}, epsilon=1)  # wrong: call-arg
nw.release.graphical_model("p.csv", cliques=[("a", "b")], epsilon=1)  # wrong: call-arg
nw.release.posterior_probability("p.csv", x="a", y="b", at=0.5, epsilon=1)  # wrong: call-arg
nw.release.PrivacyOptions(epsilon=1, mechanism="normal")  # wrong: arg-type

release = nw.release.linear_regression("people.csv", x="age", y="income", epsilon=1)
nw.infer(release, draws="many")  # wrong: call-overload
nw.infer(release, draw=500)  # wrong: call-overload
nw.infer(release, "exact", lam="small")  # wrong: call-overload
nw.infer(release, keep="summry")  # wrong: call-overload
nw.infer(1)  # wrong: call-overload
nw.infer(release).predict({"age": ["forty"]})  # wrong: dict-item
nw.infer(release).sumary()  # wrong: attr-defined
nw.infr(release)  # wrong: attr-defined
nw.release.linear_regresion("people.csv")  # wrong: attr-defined
nw.check(release, trails=100)  # wrong: call-arg
nw.plan(release, 100, [1.0])  # wrong: arg-type
nw.priors.Gamma("one", 1)  # wrong: arg-type
nw.load("posterior.nc").summary()  # wrong: union-attr
nw.infer("people.json").kl()  # wrong: attr-defined
