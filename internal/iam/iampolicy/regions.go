// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"fmt"
	"strings"
)

// CheckRegions refuses resources of IAM that name a region, as IAM does where a document is written: IAM has no
// regions, so such a statement would never match, and a Deny among them would deny nothing. Documents that were kept
// before are read all the same.
func (d Document) CheckRegions() error {
	for i, s := range d.Statements {
		for _, list := range []struct {
			name  string
			texts []string
		}{{"Resource", s.Resources}, {"NotResource", s.NotResources}} {
			for _, text := range list.texts {
				parts := strings.SplitN(text, ":", 6)
				if len(parts) == 6 && parts[2] == "iam" && parts[3] != "" && strings.Trim(parts[3], "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
					return &Malformed{Path: fmt.Sprintf("$.Statement[%d].%s", i, list.name), Why: fmt.Sprintf("IAM resource %.200s cannot contain region information", text)}
				}
			}
		}
	}
	return nil
}
