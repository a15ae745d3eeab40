// SPDX-License-Identifier: Apache-2.0

// Package resource holds the resource types that a CloudFormation template may have: their properties, which of them are
// required, which replace the resource when they change, what Ref and Fn::GetAtt return, and by which actions of the
// account a resource is made, read, changed and deleted. Everything is data in one file for each service; the names are those of
// CloudFormation's resource type reference.
//
// A template of another type is refused by name, with the list of the types that are here. A property that a type does not have
// is refused, too: it is never left out in silence.
package resource
