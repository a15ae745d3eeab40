// SPDX-License-Identifier: Apache-2.0

package subid

import (
	"fmt"
	"slices"
	"strings"
)

// New ranges are chosen from lowest on, before limit. By default no program gives ids from there to anybody:
//
//	100000…600100000        useradd (login.defs(5), SUB_UID_MIN and SUB_UID_MAX)
//	524288…1879048191       systemd-nspawn and systemd-nsresourced (https://systemd.io/UIDS-GIDS/)
//	1000000…1000999999      Incus and LXD, whose documentation gives root 1000000:1000000000
//	200000…2000200000       users of Active Directory (sssd-ldap(5), ldap_idmap_range_max) and FreeIPA
//	2147352576…2147418111   systemd's foreign ids (https://systemd.io/UIDS-GIDS/)
//	from 2147483647         podman run --userns=auto, whose manual gives containers 2147483647:2147483648
//
// Ids from 2^31 on break programs that take them for signed numbers, devpts of the kernel among them (same page of
// systemd).
const (
	lowest = 0x78000000 // 2013265920
	limit  = 0x7FFE0000 // 2147352576, the first of systemd's foreign ids
)

const (
	// alignment of the first id: the upper 16 bits of an id name the container (systemd's page, "Considerations for
	// container managers").
	alignment = 1 << 16
	// signed is the first id that a signed number cannot hold.
	signed = 1 << 31
)

// plan returns the range that an owner has or is to get, and whether it is in both files.
func (h host) plan(name string, count uint32) (r Range, there bool, err error) {
	uid, gid, err := h.of(name)
	if err != nil {
		return Range{}, false, err
	}
	users, named := idsOf(h.passwd.content, h.passwd.path, name, 2, 3)
	if named {
		return Range{}, false, fmt.Errorf("%s has a user %q, who could use the subordinate ids of that name: remove or rename the user", h.passwd.path, name)
	}
	groups, _ := idsOf(h.group.content, h.group.path, name, 2)
	others := slices.Concat(users, groups, h.uid.others(name), h.gid.others(name))
	switch {
	case uid != nil && gid != nil:
		if problem := unsound(*uid, count, others); problem != "" {
			return Range{}, false, fmt.Errorf("%s and %s reserve ids by the line %s, which %s: stop what uses these ids, remove the line from both files, then try again",
				h.uid.path, h.gid.path, uid.line(name), problem)
		}
		return *uid, true, nil
	case uid != nil && unsound(*uid, count, others) == "":
		return *uid, false, nil
	case gid != nil && unsound(*gid, count, others) == "":
		return *gid, false, nil
	}
	r, ok := choose(count, others)
	if !ok {
		return Range{}, false, fmt.Errorf("no %d consecutive subordinate ids are free from %d to %d: remove lines of owners that are gone from %s and %s, or ask for fewer",
			count, lowest, limit-1, h.uid.path, h.gid.path)
	}
	return r, false, nil
}

// unsound says why a range cannot be an owner's, or "".
func unsound(r Range, count uint32, others []taken) string {
	switch {
	case r.Count < count:
		return fmt.Sprintf("has %d ids, not %d", r.Count, count)
	case r.First < alignment || r.First%alignment != 0:
		return fmt.Sprintf("begins at %d, not at a multiple of %d above 0", r.First, alignment)
	case r.end() > signed:
		return fmt.Sprintf("ends at %d, not below %d", r.end()-1, signed)
	}
	if by := overlapped(r, others); by != "" {
		return "overlaps " + by
	}
	return ""
}

// overlapped says what has an id of a range, or "".
func overlapped(r Range, others []taken) string {
	for _, t := range others {
		if t.first < r.end() && uint64(r.First) < t.end {
			return t.by
		}
	}
	return ""
}

// choose returns the lowest free range of count ids, and false if there is none.
func choose(count uint32, others []taken) (Range, bool) {
	others = slices.DeleteFunc(others, func(t taken) bool { return t.end <= lowest || t.first >= limit })
	for first := uint32(lowest); first < limit && count <= limit-first; first += alignment {
		if r := (Range{First: first, Count: count}); overlapped(r, others) == "" {
			return r, true
		}
	}
	return Range{}, false
}

// of returns the range of an owner in each file, or nil. It returns an error if a file has several, or both differ.
func (h host) of(name string) (uid, gid *Range, err error) {
	if uid, err = h.uid.of(name); err != nil {
		return nil, nil, err
	}
	if gid, err = h.gid.of(name); err != nil {
		return nil, nil, err
	}
	if uid != nil && gid != nil && *uid != *gid {
		return nil, nil, fmt.Errorf("%s has the line %s and %s has %s: they must be the same; remove the one that is not used", h.uid.path, uid.line(name), h.gid.path, gid.line(name))
	}
	return uid, gid, nil
}

// of returns the range of an owner, or nil.
func (f file) of(name string) (*Range, error) {
	var found *Range
	for line := range strings.Lines(f.content) {
		if owner(line) != name {
			continue
		}
		r, err := parseOwn(line, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		if found != nil && *found != r {
			return nil, fmt.Errorf("%s has the lines %s and %s: must be one; remove the one that is not used", f.path, found.line(name), r.line(name))
		}
		found = &r
	}
	return found, nil
}

// others are the ranges of everybody but an owner.
func (f file) others(name string) (all []taken) {
	for line := range strings.Lines(f.content) {
		if first, end, ok := parseLine(line); ok && end > first && owner(line) != name {
			all = append(all, taken{first: first, end: end, by: fmt.Sprintf("%q in %s", strings.TrimSuffix(line, "\n"), f.path)})
		}
	}
	return all
}

// with is the content of the file with a range for an owner, or none, in place of the owner's lines.
func (f file) with(name string, r *Range) string {
	var content strings.Builder
	for line := range strings.Lines(f.content) {
		if owner(line) != name {
			content.WriteString(line)
		}
	}
	if r == nil {
		return content.String()
	}
	if text := content.String(); text != "" && !strings.HasSuffix(text, "\n") {
		content.WriteByte('\n')
	}
	content.WriteString(r.line(name) + "\n")
	return content.String()
}
