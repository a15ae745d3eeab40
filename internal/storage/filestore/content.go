// SPDX-License-Identifier: Apache-2.0

package filestore

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// content fills an empty file with the content of another file.
type content func(ctx context.Context, to, from *os.File) error

// shared lets the two files share their content until one of them is written.
func (s *Store) shared() content {
	return func(_ context.Context, to, from *os.File) error {
		err := s.reflink(to, from)
		if errors.Is(err, unix.EINVAL) {
			err = errors.Join(likewise(to, from), s.reflink(to, from))
		}
		return err
	}
}

// piece is how much is copied between two looks at whether to go on, in bytes.
const piece = 64 << 20

// copied copies what is written of it and leaves the holes. It tells how much each piece was, in bytes, and ends with
// the error that it is answered.
func copied(told func(bytes int64) error) content {
	return func(ctx context.Context, to, from *os.File) error {
		info, err := from.Stat()
		if err != nil {
			return err
		}
		for at := int64(0); ; {
			begin, err := unix.Seek(int(from.Fd()), at, unix.SEEK_DATA)
			if errors.Is(err, unix.ENXIO) { // there is nothing but a hole
				return to.Truncate(info.Size())
			}
			if err != nil {
				return err
			}
			end, err := unix.Seek(int(from.Fd()), begin, unix.SEEK_HOLE)
			if err != nil {
				return err
			}
			for at = begin; at < end; {
				if err := ctx.Err(); err != nil {
					return err
				}
				n, err := copyPiece(to, from, at, min(piece, end-at))
				if err != nil {
					return err
				}
				at += n
				if err := told(n); err != nil {
					return err
				}
			}
		}
	}
}

// copyPiece copies bytes from one place to the same. The kernel does it, where it can (copy_file_range(2)).
func copyPiece(to, from *os.File, at, most int64) (int64, error) {
	for _, file := range []*os.File{to, from} {
		if _, err := file.Seek(at, io.SeekStart); err != nil {
			return 0, err
		}
	}
	return io.CopyN(to, from, most)
}
