// SPDX-License-Identifier: Apache-2.0

// Package decision has the type of every decision in muster: a verdict, and a check for each rule that ran, on approval
// too. A bool would lose the two answers that matter most to people: "not yet" and "not mine to decide".
package decision
