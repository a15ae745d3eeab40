// SPDX-License-Identifier: Apache-2.0

// Package stackplan brings a template and what was asked of its stack together: what is wrong with them before anything is
// made, the graph of the stack, the properties that each resource is to have, its name and tags, and the outputs.
//
// A resource without a name of its own is named after its stack, its logical id and its creation, so that a replacement has
// another name and the same creation has the same one. The tags of the stack are tags of each resource that has tags; tags of
// the template go over them.
//
// What happens if
//
//	the template, a parameter or an import is wrong   all problems are told at once, and nothing is made
//	a resource has a type or property that is not here   the same, with the list of those that are
//	a resource with a name of its own is replaced     the update of the resource fails: two resources cannot have one name
package stackplan
