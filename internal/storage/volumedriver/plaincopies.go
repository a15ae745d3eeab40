// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"muster.dev/muster/internal/storage/filestore"
	"muster.dev/muster/internal/storage/volumemount"
)

// canCopy refuses what cannot be copied now, and finds out how the source is. Where files cannot share their content,
// all of it is copied, which takes time and room, and the copy is of one moment only if no pod writes meanwhile.
func (c *controller) canCopy(ctx context.Context, s *source) error {
	err := c.files.CanClone(s.place.FileSystemID)
	switch {
	case errors.As(err, &s.plain):
	case err != nil:
		return status.Error(codes.Unavailable, err.Error())
	default:
		return nil
	}
	if err := c.unwritten(ctx, *s); err != nil {
		return err
	}
	if s.written, err = s.usage(ctx, c.files); err != nil {
		return status.Errorf(codes.Unavailable, "counting what is in %s: %v", s.what, err)
	}
	space, err := c.files.Space()
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return s.fits(space)
}

// fits refuses a source of which everything is copied and for which there is no room.
func (s source) fits(space filestore.Space) error {
	if s.written > space.Room() {
		return status.Errorf(codes.ResourceExhausted, "%s has %s in it, and the host's disk has %s left, of which volumes may have %s: free some (%v)",
			s.what, size(s.written), size(space.Available), size(space.Room()), s.plain)
	}
	return nil
}

// usage is how much of the host's disk a source takes, in bytes.
func (s source) usage(ctx context.Context, files *filestore.Store) (int64, error) {
	if s.block {
		_, written, err := files.DiskUsage(s.place)
		return written, err
	}
	usage, err := files.Usage(ctx, s.place)
	return usage.Bytes, err
}

// whileStill runs something during which no pod begins to write a source of which everything is copied. Snapshots are
// never written.
func (c *controller) whileStill(ctx context.Context, s source, run func() error) error {
	if s.plain == nil || s.place.Snapshot {
		return run()
	}
	return c.files.Still(s.place, func() error { return c.unwritten(ctx, s) }, run)
}

// unwritten refuses a source that pods can write.
func (c *controller) unwritten(ctx context.Context, s source) error {
	if s.place.Snapshot {
		return nil
	}
	by, err := c.writers(ctx, s)
	switch {
	case err != nil:
		return status.Errorf(codes.Unavailable, "looking who can write %s: %v", s.what, err)
	case by != "":
		return status.Errorf(codes.FailedPrecondition, "pods of %s can write %s, and %v: so it is copied only while no pod can write it. Stop the pods that have it; "+
			"or have volumes on such a file system, mounted at `filesystems` of the state directory", by, s.what, s.plain)
	}
	return nil
}

// writers says on which machines pods can write a source; nothing if on none.
func (c *controller) writers(ctx context.Context, s source) (string, error) {
	v := volumemount.Volume{Cluster: c.clusterName, FileSystemID: s.place.FileSystemID, Path: s.place.Path}
	if s.block {
		v.Disk = s.point
	}
	machines, err := c.mounts.Writers(ctx, v)
	return strings.Join(machines, ", "), err
}

// copy makes a directory or disk as a copy, of at least a size.
func (c *controller) copy(ctx context.Context, s source, to filestore.Place, atLeast int64) error {
	var err error
	switch told := c.progress(ctx, s); {
	case s.plain == nil && s.block:
		err = c.files.CloneDisk(ctx, s.place, to, atLeast)
	case s.plain == nil:
		err = c.files.CloneDirectory(ctx, s.place, to)
	case s.block:
		err = c.files.CopyDisk(ctx, s.place, to, atLeast, told)
	default:
		err = c.files.CopyDirectory(ctx, s.place, to, told)
	}
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// progress tells how much of a source has been copied, a tenth at a time, and ends the copying when the disk has no
// room for volumes any more.
func (c *controller) progress(ctx context.Context, s source) func(bytes int64) error {
	const parts = 10
	if s.plain == nil {
		return nil
	}
	tell(ctx, fmt.Sprintf("Copying %s, since %v. Pods that are to write %s wait until it is done", size(s.written), s.plain, s.what))
	done, next := int64(0), max(s.written/parts, leastTold)
	return func(bytes int64) error {
		if done += bytes; done >= next && done < s.written {
			tell(ctx, fmt.Sprintf("Copied %s of %s", size(done), size(s.written)))
			next = done + max(s.written/parts, leastTold)
		}
		space, err := c.files.Space()
		if err == nil && space.Room() == 0 {
			err = fmt.Errorf("the host's disk has %s left, of which volumes may have none: free some", size(space.Available))
		}
		return err
	}
}

// leastTold is how much is copied, in bytes, before it is worth a word.
const leastTold = 1 << 30

// size is a number of bytes as people write it.
func size(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

type tellerKey struct{}

// telling has what is said about a call's work go somewhere: CSI has no word for progress.
func telling(ctx context.Context, say func(message string)) context.Context {
	return context.WithValue(ctx, tellerKey{}, say)
}

func tell(ctx context.Context, message string) {
	if say, ok := ctx.Value(tellerKey{}).(func(string)); ok {
		say(message)
	}
}
