// SPDX-License-Identifier: Apache-2.0

// Package awsactions has the list of AWS actions that the account answers, records or refuses, with the resources and
// condition keys that IAM decides by. The list is docs/aws-actions.md as code: a test compares the two, and the front
// answers what is on it.
//
//	What happens if                          Then
//	an action is not on the list             the front answers that it does not know it
//	an action is refused                     the front answers with the reason that the list gives
//	nobody has written the action yet        List.NotYet reports it, and the front says so
//	an action is written and still NotYet    Problems reports it
package awsactions
