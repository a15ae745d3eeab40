// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// MachineRef names a machine on record: "SOURCE|ID", with the source of machines that gave it the ID. The same machine
// may have another ID in another source, and must not be taken for a new one when the first source fails. Old records
// hold the ID alone. "" is an unknown machine. Same is the only comparison; == compares texts, not machines.
type MachineRef string

// RefOf is the reference of a machine that is Known.
func RefOf(m Fact[Machine]) MachineRef { return MachineRef(m.Source + "|" + m.Value.ID) }

// Split returns the two halves. The source is "" if the record holds the ID alone.
func (r MachineRef) Split() (source, id string) {
	if source, id, ok := strings.Cut(string(r), "|"); ok {
		return source, id
	}
	return "", string(r)
}

// Same reports whether two references name one machine. The answer counts only if ok: an unknown machine, and IDs of
// different sources, cannot be compared. An ID alone is compared with the IDs of every source.
func (r MachineRef) Same(other MachineRef) (same, ok bool) {
	sourceA, idA := r.Split()
	sourceB, idB := other.Split()
	return idA == idB, idA != "" && idB != "" && (sourceA == sourceB || sourceA == "" || sourceB == "")
}
