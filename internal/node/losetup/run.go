// SPDX-License-Identifier: Apache-2.0

package losetup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/unix"
)

// Command is the command with what it works on.
type Command struct {
	// Ask asks the host; see [Ask].
	Ask func(ctx context.Context, request Request, file *os.File) ([]Device, error)
	// Sys is where the kernel shows block devices, /sys/block.
	Sys string
	Out io.Writer
}

// Run does what a command line says. A wrong command line is an error like all others, as it is for losetup(8).
func (c Command) Run(ctx context.Context, args []string) error {
	o, err := parse(args)
	switch {
	case errors.Is(err, errHelp):
		_, err := io.WriteString(c.Out, Usage)
		return err
	case err != nil:
		return err
	case o.find:
		return c.attach(ctx, o)
	case o.detach:
		var errs []error
		for _, device := range o.rest {
			errs = append(errs, c.change(ctx, Detach, device))
		}
		return errors.Join(errs...)
	case o.resize:
		return c.change(ctx, Resize, o.rest[0])
	case o.detachAll:
		return c.detachAll(ctx)
	}
	return c.list(ctx, o)
}

func (c Command) attach(ctx context.Context, o options) error {
	file, readOnly, err := open(o.rest[0], o.readOnly)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	devices, err := c.Ask(ctx, Request{Op: Attach, ReadOnly: readOnly}, file)
	if err != nil {
		return fmt.Errorf("%s: %w", o.rest[0], err)
	}
	if o.show && len(devices) == 1 {
		_, err = fmt.Fprintln(c.Out, devices[0].node())
	}
	return err
}

// open opens a file to be written, or to be read where it cannot be written, as losetup(8) does.
func open(name string, readOnly bool) (*os.File, bool, error) {
	const flags = unix.O_NONBLOCK | unix.O_NOCTTY // whatever it turns out to be
	if !readOnly {
		file, err := os.OpenFile(name, os.O_RDWR|flags, 0)
		if err == nil || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
			return file, false, err
		}
	}
	file, err := os.OpenFile(name, os.O_RDONLY|flags, 0)
	return file, true, err
}

// change detaches or resizes a device.
func (c Command) change(ctx context.Context, op Op, device string) error {
	n, err := number(device)
	if err != nil {
		return err
	}
	if _, err := c.Ask(ctx, Request{Op: op, Number: n}, nil); err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	return nil
}

func (c Command) detachAll(ctx context.Context) error {
	all, err := c.Ask(ctx, Request{Op: List}, nil)
	errs := []error{err}
	for _, d := range all {
		errs = append(errs, c.change(ctx, Detach, d.node()))
	}
	return errors.Join(errs...)
}

func (d Device) node() string { return "/dev/loop" + strconv.Itoa(d.Number) }

// list prints the machine's devices, those of a file, or one.
func (c Command) list(ctx context.Context, o options) error {
	all, err := c.Ask(ctx, Request{Op: List}, nil)
	if err != nil {
		return err
	}
	if o.associated != "" {
		if all, err = c.of(all, o.associated); err != nil {
			return err
		}
	}
	if len(o.rest) == 1 {
		n, err := number(o.rest[0])
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(d Device) bool { return d.Number != n })
		if len(all) == 0 {
			return fmt.Errorf("%s: no such loop device of this machine", o.rest[0])
		}
	}
	// As losetup(8): a line for each device where one asked for some of them, and a table else.
	if !o.list && (o.all || o.associated != "" || len(o.rest) == 1) {
		for _, d := range all {
			if _, err := fmt.Fprintf(c.Out, "%s: [%04d]:%d (%s)\n", d.node(), d.FileSystem, d.Inode, c.path(d)); err != nil {
				return err
			}
		}
		return nil
	}
	return c.table(all, o)
}

// cells are the columns of the table.
var cells = map[string]func(Command, Device) string{
	"NAME":      func(_ Command, d Device) string { return d.node() },
	"AUTOCLEAR": func(_ Command, d Device) string { return flag(d.Detaching) },
	"RO":        func(_ Command, d Device) string { return flag(d.ReadOnly) },
	"BACK-FILE": Command.path,
	"BACK-INO":  func(_ Command, d Device) string { return strconv.FormatUint(d.Inode, 10) },
	"BACK-MAJ:MIN": func(_ Command, d Device) string {
		return fmt.Sprintf("%d:%d", unix.Major(d.FileSystem), unix.Minor(d.FileSystem))
	},
	"MAJ:MIN":   func(_ Command, d Device) string { return fmt.Sprintf("7:%d", d.Number) },
	"SIZELIMIT": func(Command, Device) string { return "0" },
	"OFFSET":    func(Command, Device) string { return "0" },
}

func flag(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

func (c Command) table(all []Device, o options) error {
	if len(all) == 0 {
		return nil
	}
	columns := o.columns
	if columns == nil {
		columns = defaultColumns
	}
	w := tabwriter.NewWriter(c.Out, 0, 8, 1, ' ', 0)
	if !o.noHeadings {
		fmt.Fprintln(w, strings.Join(columns, "\t"))
	}
	for _, d := range all {
		var line []string
		for _, column := range columns {
			line = append(line, cells[column](c, d))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

// path of the file behind a device, as the kernel shows it on this machine.
func (c Command) path(d Device) string {
	raw, err := os.ReadFile(filepath.Join(c.Sys, "loop"+strconv.Itoa(d.Number), "loop", "backing_file"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(raw), "\n")
}

// of are the devices of a file: those with that file behind them, or what its path names by now.
func (c Command) of(all []Device, name string) ([]Device, error) {
	var is unix.Stat_t
	if err := unix.Stat(name, &is); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	resolved, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d Device) bool {
		return (d.FileSystem != is.Dev || d.Inode != is.Ino) && c.path(d) != resolved
	}), nil
}
