// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootreport"
)

var _ machine.Reporter = (*Provider)(nil)

// Report implements [machine.Reporter]. It reads the machine's disk, and follows no links out of it.
func (p *Provider) Report(id string) (bootreport.Report, bool) {
	if machine.ValidateID(id) != nil {
		return bootreport.Report{}, false
	}
	disk, err := os.OpenRoot(filepath.Join(p.store.Path(id), rootDir))
	if err != nil {
		return bootreport.Report{}, false
	}
	defer func() { _ = disk.Close() }()
	return bootreport.Read(disk)
}
