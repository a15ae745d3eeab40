// SPDX-License-Identifier: Apache-2.0

// Package stacktemplate reads and evaluates templates of CloudFormation: parse, check, order of the resources, parameters,
// functions, outputs, and what differs between two templates. The package is pure: parameters, conditions, exports and
// resources that exist come from an Env.
//
// A template is the text of a stranger. Sizes are limited before anything is made of it (limits.go), and the size of each
// evaluated value is, too: functions that repeat text, such as Fn::Sub and Fn::Join, cannot take more memory than MaxValue.
//
// Values that have been evaluated are string, bool, json.Number, []any and map[string]any. A number keeps its text. No
// value is nil: a function that has no result is an error with the path of the function. Evaluated values may share
// parts with the template and with each other, so callers must not change them.
//
// The reader is stricter than AWS in these points:
//
//   - a key that is there twice is a problem, and so is a second document of YAML;
//   - Transform takes AWS::LanguageExtensions alone, for Fn::Length, Fn::ToJsonString and DefaultValue of Fn::FindInMap;
//   - Rules, Hooks, Fn::Transform, Fn::ForEach and dynamic references ({{resolve:…}}) are refused by name;
//   - AllowedPattern is a regular expression of Go (RE2), not of Java: no look-around, no back-references.
//
// Plain scalars of YAML are read as AWS reads them (YAML 1.1): yes, no, on and off are booleans. A date is text, and so is
// a number that JSON has no form for, such as 0123 or 1_000: an account id keeps its first zero.
//
// What happens if
//
//	a template is not well-formed or breaks a rule     Parse fails with all problems, each with its path
//	a name refers to nothing, resources form a cycle   Check fails with all problems; Order fails and names the cycle
//	a parameter is missing, unknown or not allowed     Arguments fails with all problems
//	an export, a key or an attribute does not exist    Rehearse says so before anything is made, Properties when it is evaluated
//	a value comes from a parameter with NoEcho         no error of this package quotes it, and Shown has **** in its place
package stacktemplate
