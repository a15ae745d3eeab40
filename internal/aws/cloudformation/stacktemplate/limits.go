// SPDX-License-Identifier: Apache-2.0

package stacktemplate

// Limits of a template, as in AWS's page "Understand CloudFormation quotas". Sizes are in bytes, or in characters where
// the name says so.
const (
	MaxBody              = 51_200
	MaxDescription       = 1_024
	MaxResources         = 500
	MaxParameters        = 200
	MaxOutputs           = 200
	MaxMappings          = 200
	MaxMappingKeys       = 200 // of a mapping, and of each of its keys
	MaxNameCharacters    = 255 // of a resource, parameter, output, mapping and key of a mapping
	MaxParameterValue    = 4_096
	MaxCidrs             = 256
	MaxLogicalConditions = 10 // of Fn::And and Fn::Or
)

// Limits of this package, for which AWS gives no figure.
const (
	// MaxDepth is how many levels of maps, lists and functions a template may have.
	MaxDepth = 100
	// MaxValue is how many bytes the values of one resource or output may have, with all values that they are made of.
	MaxValue = 1 << 20
	// maxRehearsal is the same for all resources and outputs of a template together.
	maxRehearsal = 8 << 20
	// maxProblems is how many problems an Invalid lists.
	maxProblems = 100
	// maxPath is how many bytes of a path a problem shows.
	maxPath = 300
	// cost is what a value counts beside its text: the size of an interface.
	cost = 16
)
