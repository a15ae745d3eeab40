// SPDX-License-Identifier: Apache-2.0

package policyconfig

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/platform/strictyaml"
)

// MaxSize is the most bytes the file may have.
const MaxSize = strictyaml.MaxSize

// Problems is everything wrong with a policy file, a line each.
type Problems = strictyaml.Problems

// Read reads a policy file and fills in defaults. Everything that is wrong with it comes back as one error, Problems.
func Read(data []byte) (Configuration, error) {
	var c Configuration
	err := strictyaml.One(data, "policy file", "apiVersion, kind and signers", &c, func() field.ErrorList {
		c.setDefaults()
		return c.validate()
	})
	if err != nil {
		return Configuration{}, err
	}
	return c, nil
}
