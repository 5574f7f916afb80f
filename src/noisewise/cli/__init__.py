"""The command line, the only package that sees both halves.

``main`` is where the program begins and ends, ``verbs`` lists its verbs. One file holds a verb or a
few: ``release``, ``inspect``, ``ledger``, ``infer``, ``results`` (predict, marginal, sample and
report), ``plan_and_check``, ``demo``, ``reproduce``. ``model_commands`` makes commands from the
registry of models, ``options`` reads what is typed, ``messages`` puts errors into the words of the
command line, ``console`` prints, ``early_interrupt`` ends the program while it still loads, and
``reference`` writes the reference page. ``public_features`` holds the options of pooled groups.
"""
