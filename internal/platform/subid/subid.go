// SPDX-License-Identifier: Apache-2.0

// Package subid reserves ranges of subordinate user and group ids on the host, by lines of /etc/subuid and /etc/subgid
// (subuid(5), subgid(5)). A user namespace maps its ids to such a range; the lines keep useradd, podman and other
// programs that read these files from giving the same ids to another owner.
//
// An owner has one range, the same in both files. The owner's name must not be the name of a user: that user could map
// the ids by newuidmap(1). Numbers are read as leniently as any known reader of these files does, so a range that one
// program understands is never given away. The lines of the owner itself must be exact: owner:first:count.
//
// Reserve and Release take lckpwdf(3)'s lock on .pwd.lock, then subuid.lock and subgid.lock, all as shadow-utils do
// (lib/commonio.c). The first keeps out useradd, usermod, vipw, systemd-sysusers and a second caller of this package.
// The other two keep out shadow-utils that have no lckpwdf(3), as on musl, or that run with --prefix.
//
// What happens if
//
//	the process dies between the two files    Reserve takes the same range in the other file, or chooses anew if another
//	                                          owner has it by then; Release removes what is there
//	the process dies with the locks           the kernel releases the first; the others name a dead process and are removed
//	another program holds a lock              15 seconds of waiting, then an error that names the file and the process
//	a line cannot be parsed                   the line is kept and reserves nothing, unless it names the owner: an error
//	a file is a symbolic link, or read-only   an error with the line that is needed; if both files have it, they are only read
//	a file is missing                         it is made, with mode 0644
//	an editor that takes no lock saves a file at the same moment   its change or this one is lost
package subid

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

// lockWait is how long Reserve and Release wait for locks; lckpwdf(3) gives up after the same time.
const lockWait = 15 * time.Second

// Range is a range of consecutive ids of the host, user ids and group ids alike.
type Range struct {
	// First is the lowest id, a multiple of 65536.
	First uint32
	// Count is the number of ids.
	Count uint32
}

// end is the first id after the range.
func (r Range) end() uint64 { return uint64(r.First) + uint64(r.Count) }

// line is the line of a file that reserves the range, without its newline.
func (r Range) line(name string) string { return fmt.Sprintf("%s:%d:%d", name, r.First, r.Count) }

// ownerName is stricter than useradd's rule, so a name never is a number, a comment or an NIS entry.
var ownerName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)

func checkName(name string) error {
	if !ownerName.MatchString(name) {
		return fmt.Errorf("invalid owner %q of subordinate ids: must be 1 to 32 letters, digits, _, . or -, and begin with a letter or _", name)
	}
	return nil
}

// Reserve returns the range that the owner has in the files subuid and subgid of the directory etc, which is /etc.
// If the owner has none, Reserve takes the lowest free range of count ids and writes it to both files.
// It returns an error if the owner's range is smaller than count, differs between the files or overlaps another owner's
// range or the id of a user or group; if no range is free; and if a file cannot be locked or written.
func Reserve(etc, name string, count uint32) (Range, error) {
	if err := checkName(name); err != nil {
		return Range{}, err
	}
	if count == 0 {
		return Range{}, errors.New("invalid count 0 of subordinate ids: must be at least 1")
	}
	h, err := read(etc)
	if err != nil {
		return Range{}, err
	}
	r, there, planErr := h.plan(name, count)
	if planErr == nil && there {
		return r, nil // without a lock: /etc may be read-only
	}
	release, err := lock(etc, lockWait)
	if err != nil {
		return Range{}, cmp.Or(planErr, h.advise(err, "add", r.line(name)))
	}
	defer release()
	if h, err = read(etc); err != nil {
		return Range{}, err
	}
	if r, there, err = h.plan(name, count); err != nil || there {
		return r, err
	}
	if err := h.write(name, &r); err != nil {
		return Range{}, h.advise(err, "add", r.line(name))
	}
	return r, nil
}

// Find returns the range that the owner has in the files subuid and subgid of the directory etc. It returns false if
// the owner has none in one of them. It returns an error if the files differ or a malformed line names the owner.
func Find(etc, name string) (Range, bool, error) {
	if err := checkName(name); err != nil {
		return Range{}, false, err
	}
	h, err := read(etc)
	if err != nil {
		return Range{}, false, err
	}
	uid, gid, err := h.of(name)
	if err != nil || uid == nil || gid == nil {
		return Range{}, false, err
	}
	return *uid, true, nil
}

// Release removes the owner's lines from the files subuid and subgid of the directory etc, if there are any. It returns
// an error if a malformed line names the owner, or a file cannot be locked or written.
func Release(etc, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	h, err := read(etc)
	if err != nil {
		return err
	}
	if has, err := h.has(name); err != nil || !has {
		return err
	}
	advice := "every line that begins with " + name + ":"
	release, err := lock(etc, lockWait)
	if err != nil {
		return h.advise(err, "remove", advice)
	}
	defer release()
	if h, err = read(etc); err != nil {
		return err
	}
	if has, err := h.has(name); err != nil || !has {
		return err
	}
	return h.advise(h.write(name, nil), "remove", advice)
}

// errManaged is a file that another program manages.
var errManaged = errors.New("muster does not replace symbolic links")

// advise adds to an error what people can do on a host whose files are not to be written.
func (h host) advise(err error, verb, line string) error {
	for _, refused := range []error{errManaged, fs.ErrPermission, unix.EROFS, unix.EBUSY} { // EBUSY is a mount point
		if errors.Is(err, refused) {
			return fmt.Errorf("%w: as root, or in the configuration that these files are made from, %s %s in %s and %s, then try again",
				err, verb, line, h.uid.path, h.gid.path)
		}
	}
	return err
}
