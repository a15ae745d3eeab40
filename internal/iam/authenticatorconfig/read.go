// SPDX-License-Identifier: Apache-2.0

package authenticatorconfig

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/platform/strictyaml"
)

// MaxSize is the most bytes the file may have.
const MaxSize = strictyaml.MaxSize

// Problems is everything wrong with the file, a line each.
type Problems = strictyaml.Problems

// Read reads the file and fills in defaults. Everything that is wrong with it comes back as one error, Problems.
func Read(data []byte) (Configuration, error) {
	var c Configuration
	err := strictyaml.One(data, "file", "apiVersion, kind and clusterID", &c, func() field.ErrorList {
		c.setDefaults()
		return c.validate()
	})
	if err != nil {
		return Configuration{}, err
	}
	return c, nil
}
