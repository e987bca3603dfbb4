//===- CallBase.td - The call dialect ----------------------*- tablegen -*-===//
//
// The dialect itself and the base class of its ops. Types, traits and
// interfaces are those of nn.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_CALL_CALLBASE_TD
#define PIPEWRIGHT_DIALECTS_CALL_CALLBASE_TD

include "dialects/nn/NNBase.td"

def Call_Dialect : Dialect {
  let name = "call";
  let cppNamespace = "::pipewright::call";
  let summary = "Forms of nn ops that the libraries of some targets have";
  let description = [{
    Each op computes what nn ops do together, in a form that a library likes
    better. Not every target has such a library: which ops its programs can call
    is asked of the target. README.md beside this file has the rationale.
  }];
  let useDefaultAttributePrinterParser = 1;
}

/// An op without effects whose result types follow from its operands, and which
/// is a call of the runtime.
class Call_Op<string mnemonic, list<Trait> traits = []>
    : Op<Call_Dialect, mnemonic, !listconcat([
        Pure, InferTypeOpAdaptor, NN_Cost, NN_Library], traits)>;

#endif // PIPEWRIGHT_DIALECTS_CALL_CALLBASE_TD
