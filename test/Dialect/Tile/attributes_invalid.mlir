// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of gdn_tile that there are not, of wrong values, and where they may
// not stand.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'func.func' op expects an attribute that gdn_tile has, but got 'gdn_tile.stages'; like it is 'gdn_tile.stage'}}
func.func private @slip() attributes {gdn_tile.stages = {}}

// -----

// expected-error@+1 {{'func.func' op expects an attribute that gdn_tile has, but got 'gdn_tile.launch_bounds'; there are 'gdn_tile.stage', 'gdn_tile.tokens'}}
func.func private @unknown() attributes {gdn_tile.launch_bounds = 4}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn_tile.stage' on functions only}}
module attributes {gdn_tile.stage = {grid = ["N"]}} {
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.stage' on functions only, but got it on argument 0}}
func.func private @of_an_argument(index {gdn_tile.stage = {overlaps = "next"}})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.stage' on functions only, but got it on result 1}}
func.func private @of_a_result() -> (index, index {gdn_tile.stage = {bits = "staged"}})

// -----

func.func @of_an_op(%n: index) {
  // expected-error@+1 {{'arith.addi' op expects 'gdn_tile.stage' on functions only}}
  %m = arith.addi %n, %n {gdn_tile.stage = {multiples = ["N", "2"]}} : index
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'grid' of 'gdn_tile.stage' to be an array of linear forms, but got 4 : i64}}
func.func private @grid_is_a_number() attributes {gdn_tile.stage = {grid = 4}}

// -----

// expected-error@+1 {{'func.func' op expects 'grid' of 'gdn_tile.stage' to hold linear forms, but form 1 is not: expected a number after '*', as a form is linear, at column 3 of "N*H", but got 'H'}}
func.func private @grid_is_no_form() attributes {gdn_tile.stage = {grid = ["N", "N*H"]}}

// -----

// expected-error@+1 {{'func.func' op expects 'groups' of 'gdn_tile.stage' to be an array of linear forms, but got [4]}}
func.func private @groups_is_a_number() attributes {gdn_tile.stage = {groups = [4]}}

// -----

// expected-error@+1 {{'func.func' op expects 'groups' of 'gdn_tile.stage' to hold linear forms, but form 0 is not: expected a number or a symbol at column 4 of "N +", but the form ends}}
func.func private @group_is_no_form() attributes {gdn_tile.stage = {groups = ["N +"]}}

// -----

// expected-error@+1 {{'func.func' op expects 'symbols' of 'gdn_tile.stage' to be an array of identifiers, but got [1]}}
func.func private @symbols_are_numbers() attributes {gdn_tile.stage = {symbols = [1]}}

// -----

// expected-error@+1 {{'func.func' op expects 'symbols' of 'gdn_tile.stage' to be an array of identifiers, but got ["2*N"]}}
func.func private @symbol_is_a_form() attributes {gdn_tile.stage = {symbols = ["2*N"]}}

// -----

// expected-error@+1 {{'func.func' op expects the symbols of 'symbols' of 'gdn_tile.stage' to be unique, but got "N" twice}}
func.func private @symbols_are_the_same() attributes {gdn_tile.stage = {symbols = ["N", "H", "N"]}}

// -----

// expected-error@+1 {{'func.func' op expects argument 1 to be an index, the value of symbol "Hk"}}
func.func private @symbol_without_argument(index)
    attributes {gdn_tile.stage = {symbols = ["N", "Hk"]}}

// -----

// expected-error@+1 {{'func.func' op expects argument 0 to be an index, the value of symbol "N"}}
func.func private @symbol_of_another_type(i64) attributes {gdn_tile.stage = {symbols = ["N"]}}

// -----

// expected-error@+1 {{'func.func' op expects 'multiples' of 'gdn_tile.stage' to be an array of linear forms, in pairs, but got ["Hv"]}}
func.func private @multiple_of_nothing() attributes {gdn_tile.stage = {multiples = ["Hv"]}}

// -----

// expected-error@+1 {{'func.func' op expects 'multiples' of 'gdn_tile.stage' to hold linear forms, but form 1 is not: expected '+' or '-' at column 3 of "Hk!", but got '!'}}
func.func private @multiple_is_no_form() attributes {gdn_tile.stage = {multiples = ["Hv", "Hk!"]}}

// -----

// expected-error@+1 {{'func.func' op expects 'facts' of 'gdn_tile.stage' to be a dictionary of strings, but got {chunk = 64 : i64}}}
func.func private @fact_is_a_number() attributes {gdn_tile.stage = {facts = {chunk = 64}}}

// -----

// expected-error@+1 {{'func.func' op expects 'stage_of' of 'gdn_tile.stage' to be a string, but got ""}}
func.func private @stage_of_nothing() attributes {gdn_tile.stage = {stage_of = ""}}

// -----

// expected-error@+1 {{'func.func' op expects 'stage_of' of 'gdn_tile.stage' to be a string, but got @prefill}}
func.func private @stage_of_a_symbol() attributes {gdn_tile.stage = {stage_of = @prefill}}

// -----

// expected-error@+1 {{'func.func' op expects 'variant' of 'gdn_tile.stage' to be a string or several, but got 3 : i64}}
func.func private @variant_is_a_number() attributes {gdn_tile.stage = {variant = 3}}

// -----

// expected-error@+1 {{'func.func' op expects 'variant' of 'gdn_tile.stage' to be a string or several, but got []}}
func.func private @no_variant() attributes {gdn_tile.stage = {variant = []}}

// -----

// expected-error@+1 {{'func.func' op expects 'overlaps' of 'gdn_tile.stage' to be "next" or "last", but got "first"}}
func.func private @beside_whom() attributes {gdn_tile.stage = {overlaps = "first"}}

// -----

// expected-error@+1 {{'func.func' op expects 'bits' of 'gdn_tile.stage' to be a string, but got ["staged"]}}
func.func private @bits_are_several() attributes {gdn_tile.stage = {bits = ["staged"]}}

// -----

// expected-error@+1 {{'func.func' op expects 'scratch_bytes' of 'gdn_tile.stage' to be an i64 of at least 0, but got -1 : i64}}
func.func private @scratch_below_zero() attributes {gdn_tile.stage = {scratch_bytes = -1}}

// -----

// expected-error@+1 {{'func.func' op expects 'scratch_bytes' of 'gdn_tile.stage' to be an i64 of at least 0, but got 64 : i32}}
func.func private @scratch_of_another_type()
    attributes {gdn_tile.stage = {scratch_bytes = 64 : i32}}

// -----

// expected-error@+1 {{'func.func' op expects 'workspace' of 'gdn_tile.stage' to be an array of arrays of at least one linear form, but got ["N"]}}
func.func private @regions_are_strings() attributes {gdn_tile.stage = {workspace = ["N"]}}

// -----

// expected-error@+1 {{'func.func' op expects 'workspace' of 'gdn_tile.stage' to be an array of arrays of at least one linear form, but got [[]]}}
func.func private @region_without_bytes(memref<f32>)
    attributes {gdn_tile.stage = {workspace = [[]]}}

// -----

// expected-error@+1 {{'func.func' op expects 'workspace' of 'gdn_tile.stage' to hold linear forms, but form 0 of region 1 is not: expected a number after '*', as a form is linear, at column 3 of "N*N", but got 'N'}}
func.func private @size_is_no_form()
    attributes {gdn_tile.stage = {workspace = [["4"], ["N*N", "4"]]}}

// -----

// expected-error@+1 {{'func.func' op expects an argument for each of the 1 regions of 'workspace' of 'gdn_tile.stage', but got 0}}
func.func private @region_without_argument()
    attributes {gdn_tile.stage = {workspace = [["N", "4"]]}}

// -----

// expected-error@+1 {{'func.func' op expects argument 1 to be a row-major memref of rank 2, region 0 of 'workspace' of 'gdn_tile.stage', but got 'memref<?xf32>'}}
func.func private @region_of_another_rank(index, memref<?xf32>)
    attributes {gdn_tile.stage = {workspace = [["N", "8", "4"]]}}

// -----

// expected-error@+1 {{'func.func' op expects argument 0 to be a row-major memref of rank 1, region 0 of 'workspace' of 'gdn_tile.stage', but got 'memref<?xf32, strided<[2]>>'}}
func.func private @region_with_strides(memref<?xf32, strided<[2]>>)
    attributes {gdn_tile.stage = {workspace = [["N", "4"]]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to be an array of pairs of arrays of linear forms, with alternatives as {any = [..]} and {any_batch = [..]} once each at most, or several by name, but got [["N"]]}}
func.func private @condition_is_no_pair() attributes {gdn_tile.stage = {conditions = [["N"]]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to be an array of pairs of arrays of linear forms, with alternatives as {any = [..]} and {any_batch = [..]} once each at most, or several by name, but got {split = ["N"]}}}
func.func private @condition_by_name_is_no_pair()
    attributes {gdn_tile.stage = {conditions = {split = ["N"]}}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to hold linear forms, but form 0 of condition 1 is not: expected '+' or '-' at column 2 of "N/2", but got '/'}}
func.func private @condition_is_no_form()
    attributes {gdn_tile.stage = {conditions = [[["N"], ["2"]], [["N/2"], ["2"]]]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to hold linear forms, but form 1 of condition 0 of "split" is not: expected a number or a symbol at column 1 of "", but the form ends}}
func.func private @condition_by_name_is_no_form()
    attributes {gdn_tile.stage = {conditions = {split = [[["2"], ["2", ""]]]}}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to be an array of pairs of arrays of linear forms, with alternatives as {any = [..]} and {any_batch = [..]} once each at most, or several by name, but got [{any = [[[["N"], ["2"]]]]}]}}
func.func private @one_alternative()
    attributes {gdn_tile.stage = {conditions = [{any = [[[["N"], ["2"]]]]}]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to be an array of pairs of arrays of linear forms, with alternatives as {any = [..]} and {any_batch = [..]} once each at most, or several by name, but got [{any = [[[["N"], ["2"]]], []]}]}}
func.func private @empty_alternative()
    attributes {gdn_tile.stage = {conditions = [{any = [[[["N"], ["2"]]], []]}]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to be an array of pairs of arrays of linear forms, with alternatives as {any = [..]} and {any_batch = [..]} once each at most, or several by name, but got [{any = [[[["N"], ["2"]]], [[["2"], ["N"]]]]}, {any = [[[["N"], ["2"]]], [[["2"], ["N"]]]]}]}}
func.func private @alternatives_twice()
    attributes {gdn_tile.stage = {conditions = [{any = [[[["N"], ["2"]]], [[["2"], ["N"]]]]}, {any = [[[["N"], ["2"]]], [[["2"], ["N"]]]]}]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to be an array of pairs of arrays of linear forms, with alternatives as {any = [..]} and {any_batch = [..]} once each at most, or several by name, but got [{any_batch = []}]}}
func.func private @any_batch_of_none()
    attributes {gdn_tile.stage = {conditions = [{any_batch = []}]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to be an array of pairs of arrays of linear forms, with alternatives as {any = [..]} and {any_batch = [..]} once each at most, or several by name, but got [{any_batch = [[]]}, {any_batch = [[]]}]}}
func.func private @any_batch_twice()
    attributes {gdn_tile.stage = {conditions = [{any_batch = [[]]}, {any_batch = [[]]}]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to be an array of pairs of arrays of linear forms, with alternatives as {any = [..]} and {any_batch = [..]} once each at most, or several by name, but got [{any = [[[["N"], ["2"]]], [[["2"], ["N"]]]], any_batch = [[]]}]}}
func.func private @any_batch_besides()
    attributes {gdn_tile.stage = {conditions = [{any = [[[["N"], ["2"]]], [[["2"], ["N"]]]], any_batch = [[]]}]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to hold linear forms, but form 0 of condition 0 of alternative 1 is not: expected a number or a symbol at column 1 of "", but the form ends}}
func.func private @any_batch_is_no_form()
    attributes {gdn_tile.stage = {conditions = [{any_batch = [[], [[[""], ["N"]]]]}]}}

// -----

// expected-error@+1 {{'func.func' op expects 'conditions' of 'gdn_tile.stage' to hold linear forms, but form 0 of condition 0 of alternative 1 of "split" is not: expected a number or a symbol at column 1 of "", but the form ends}}
func.func private @alternative_is_no_form()
    attributes {gdn_tile.stage = {conditions = {split = [{any = [[[["N"], ["2"]]], [[["2"], [""]]]]}]}}}

// -----

// The function itself is at fault, and says so.
// expected-error@+1 {{'func.func' op requires attribute 'function_type'}}
"func.func"() <{sym_name = "untyped"}> ({
}) {gdn_tile.stage = {symbols = ["N"], workspace = [["N", "4"]]}} : () -> ()

// -----

// expected-error@+1 {{'func.func' op expects 'same_chunks' of 'gdn_tile.stage' to be an i64 of at least 2, but got 1 : i64}}
func.func private @split_in_one() attributes {gdn_tile.stage = {same_chunks = 1}}

// -----

// expected-error@+1 {{'func.func' op expects the last axis of 'grid' of 'gdn_tile.stage' to be 2, as 'same_chunks' of 'gdn_tile.stage' says, but got "3"}}
func.func private @split_in_three() attributes {gdn_tile.stage = {grid = ["N", "3"], same_chunks = 2}}

// -----

// expected-error@+1 {{'func.func' op expects the last axis of 'grid' of 'gdn_tile.stage' to be 2, as 'same_chunks' of 'gdn_tile.stage' says, but got none}}
func.func private @split_without_grid() attributes {gdn_tile.stage = {same_chunks = 2}}

// -----

// expected-error@+1 {{'func.func' op expects 'row_values' of 'gdn_tile.stage' to be an i64 of 1 to 8, but got 16 : i64}}
func.func private @long_rows() attributes {gdn_tile.stage = {row_values = 16}}

// -----

// expected-error@+1 {{'func.func' op expects 'follows' of 'gdn_tile.stage' to be an i64 of 1, but got 2 : i64}}
func.func private @awaits_two() attributes {gdn_tile.stage = {follows = 2}}

// -----

// expected-error@+1 {{'func.func' op expects 'blocks_stay' of 'gdn_tile.stage' to be an i64 of 1, but got 0 : i64}}
func.func private @blocks_go() attributes {gdn_tile.stage = {blocks_stay = 0}}

// -----

// expected-error@+1 {{'func.func' op expects 'awaits_stage' of 'gdn_tile.stage' to be an i64 of 1, but got 2 : i64}}
func.func private @awaits_two() attributes {gdn_tile.stage = {awaits_stage = 2}}

// -----

// expected-error@+1 {{'func.func' op expects 'copies_ahead' of 'gdn_tile.stage' to be an i64 of 1, but got 2 : i64}}
func.func private @copies_twice() attributes {gdn_tile.stage = {copies_ahead = 2}}

// -----

// expected-error@+1 {{'func.func' op expects 'token_pieces' of 'gdn_tile.stage' to be an i64 of at least 1, but got 0 : i64}}
func.func private @no_pieces() attributes {gdn_tile.stage = {token_pieces = 0}}

// -----

// expected-error@+1 {{'func.func' op expects the last axis of 'grid' of 'gdn_tile.stage' to be 4, as 'token_pieces' of 'gdn_tile.stage' says, but got "H"}}
func.func private @pieces_of_heads() attributes {gdn_tile.stage = {grid = ["N", "H"], token_pieces = 4}}

// -----

// expected-error@+1 {{'func.func' op expects the last axis of 'grid' of 'gdn_tile.stage' to be 4, as 'token_pieces' of 'gdn_tile.stage' says, but got none}}
func.func private @pieces_without_grid() attributes {gdn_tile.stage = {token_pieces = 4}}

// -----

func.func @tokens_of_no_number(%begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op expects 'gdn_tile.tokens' to be a unit attribute or an i64 of at least 1, but got "8"}}
  scf.for %t = %begin to %end step %c1 {
  } {gdn_tile.tokens = "8"}
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.stage' to be a dictionary, but got "decode"}}
func.func private @stage_is_a_name() attributes {gdn_tile.stage = "decode"}

// -----

// expected-error@+1 {{'func.func' op expects a field that 'gdn_tile.stage' has, but got 'grids'; like it is 'grid'}}
func.func private @field_slip() attributes {gdn_tile.stage = {grids = ["N"]}}

// -----

// expected-error@+1 {{'func.func' op expects a field that 'gdn_tile.stage' has, but got 'launch_bounds'; there are 'grid', 'symbols', 'groups', 'multiples', 'facts', 'stage_of', 'variant', 'workspace', 'conditions', 'overlaps', 'bits', 'same_chunks', 'token_pieces', 'row_values', 'copies_ahead', 'blocks_stay', 'follows', 'awaits_stage', 'scratch_bytes'}}
func.func private @unknown_field() attributes {gdn_tile.stage = {launch_bounds = 4}}
