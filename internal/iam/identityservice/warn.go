// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"fmt"

	"muster.dev/muster/internal/iam/iampolicy"
)

// maxWarnings is how many warnings of one document are logged, and maxWarning how many characters of each.
const (
	maxWarnings = 10
	maxWarning  = 300
)

// read reads a document that is to be kept. Managed policies must be of the newest version, as on AWS; inline and trust
// policies may be of either. Contents with another effect here than on AWS go into the request's line of the log,
// because IAM's answers have no place for it.
func (c *call) read(k iampolicy.Kind, text string) (iampolicy.Document, error) {
	document, err := iampolicy.Parse(k, text)
	if err != nil {
		return document, err
	}
	if k == iampolicy.Managed && document.Version != iampolicy.Version2012 {
		return document, &iampolicy.Malformed{Path: "$.Version", Why: fmt.Sprintf("a managed policy must be version %s or greater, and it is %q (none counts as %s)",
			iampolicy.Version2012, document.Version, iampolicy.Version2008)}
	}
	if err := document.CheckRegions(); err != nil {
		return document, err
	}
	warnings := document.Warnings()
	for _, w := range warnings[:min(len(warnings), maxWarnings)] {
		c.record.Warnings = append(c.record.Warnings, fmt.Sprintf("%.*s", maxWarning, w))
	}
	return document, nil
}
