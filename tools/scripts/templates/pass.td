def @Camel@ : Pass<"@flag@", "::mlir::ModuleOp"> {
  let summary = "What it does, as an order";
  let description = [{
    One paragraph: what becomes what, and the idea.

    **Runs after** nothing in particular.

    **Needs**: what must hold of the IR.

    **Leaves**: what holds afterwards, and what is left alone.

    **Numerics**: bit-preserving, or what is reordered and rounded.

    **Fails** with an error on the op when what it needs does not hold.

    Before and after: `@test@`.
  }];
  let statistics = [
    Statistic<"numRewritten", "num-rewritten", "Ops rewritten">
  ];
}

