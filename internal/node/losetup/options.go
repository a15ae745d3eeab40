// SPDX-License-Identifier: Apache-2.0

package losetup

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// options are a command line.
type options struct {
	find, show, readOnly, detach, detachAll, resize, all, list, noHeadings bool
	associated                                                             string
	columns                                                                []string
	rest                                                                   []string
}

// Usage is what --help prints.
const Usage = `losetup of a machine with a user namespace of its own. Muster's service on the host attaches the files.

  losetup -f [--show] [-r] FILE    make a file, or a block device, a loop device of the next free number
  losetup -d DEVICE...             detach loop devices; -D detaches all of this machine
  losetup -c DEVICE                let a loop device have the size that its file has by now
  losetup -a                       list the loop devices of this machine
  losetup -j FILE                  list those of a file
  losetup -l [-n] [-O COLUMNS]     list them as a table, with -a, -j FILE or DEVICE

COLUMNS are NAME, AUTOCLEAR, RO, BACK-FILE, BACK-INO, BACK-MAJ:MIN, MAJ:MIN, SIZELIMIT and OFFSET.
`

// defaultColumns are those of losetup(8) that say something here.
var defaultColumns = []string{"NAME", "SIZELIMIT", "OFFSET", "AUTOCLEAR", "RO", "BACK-FILE"}

// errHelp asks for the usage.
var errHelp = errors.New("help")

// elsewhere are options of losetup(8) that are not here, and why.
var elsewhere = map[string]string{
	"offset": "copy that part of the file first", "sizelimit": "copy that part of the file first", "partscan": "attach each partition's file by itself",
	"direct-io": "the host decides about it", "sector-size": "devices have sectors of 512 bytes",
	"nooverlap": "ask losetup -j FILE first", "json": "ask for columns (-O) without headings (-n)", "raw": "ask for columns (-O) without headings (-n)",
}

// parse reads a command line as losetup(8) does.
func parse(args []string) (options, error) {
	var o options
	var columns string
	set := pflag.NewFlagSet(Program, pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	set.BoolVarP(&o.find, "find", "f", false, "")
	set.BoolVar(&o.show, "show", false, "")
	set.BoolVarP(&o.readOnly, "read-only", "r", false, "")
	set.BoolVarP(&o.detach, "detach", "d", false, "")
	set.BoolVarP(&o.detachAll, "detach-all", "D", false, "")
	set.BoolVarP(&o.all, "all", "a", false, "")
	set.BoolVarP(&o.list, "list", "l", false, "")
	set.BoolVarP(&o.noHeadings, "noheadings", "n", false, "")
	set.StringVarP(&o.associated, "associated", "j", "", "")
	set.StringVarP(&columns, "output", "O", "", "")
	set.BoolP("partscan", "P", false, "")
	set.BoolVarP(&o.resize, "set-capacity", "c", false, "")
	set.BoolP("nooverlap", "L", false, "")
	set.BoolP("json", "J", false, "")
	set.Bool("raw", false, "")
	set.StringP("offset", "o", "", "")
	set.String("sizelimit", "", "")
	set.StringP("sector-size", "b", "", "")
	set.String("direct-io", "", "")
	if err := set.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return o, errHelp
	} else if err != nil {
		return o, fmt.Errorf("%w; losetup --help lists what there is", err)
	}
	for name, why := range elsewhere {
		if set.Changed(name) {
			return o, fmt.Errorf("--%s is not there on a machine with a user namespace of its own: %s", name, why)
		}
	}
	o.rest = set.Args()
	if columns != "" {
		o.list = true
		for column := range strings.SplitSeq(strings.TrimPrefix(columns, "+"), ",") {
			o.columns = append(o.columns, strings.ToUpper(column))
		}
		if strings.HasPrefix(columns, "+") {
			o.columns = append(append([]string{}, defaultColumns...), o.columns...)
		}
	}
	for _, column := range o.columns {
		if _, ok := cells[column]; !ok {
			return o, fmt.Errorf("there is no column %q; losetup --help lists them", column)
		}
	}
	return o, o.check()
}

// check refuses what makes no sense together.
func (o options) check() error {
	asked := 0
	for _, one := range []bool{o.find, o.detach, o.detachAll, o.resize, o.associated != ""} {
		if one {
			asked++
		}
	}
	switch {
	case asked > 1:
		return errors.New("only one of --find, --detach, --detach-all, --set-capacity and --associated may be there")
	case o.find && len(o.rest) == 0:
		return errors.New("no number of a device can be had before it is attached, since another machine may have it a moment later: say which file, losetup --find --show FILE")
	case o.find && len(o.rest) > 1:
		return fmt.Errorf("one file at a time can be attached, not %q", o.rest)
	case o.detach && len(o.rest) == 0:
		return errors.New("which device? losetup --detach DEVICE")
	case o.resize && len(o.rest) != 1:
		return errors.New("which device? losetup --set-capacity DEVICE")
	case !o.find && !o.detach && len(o.rest) > 1:
		return fmt.Errorf("the host chooses the number of a device: losetup --find --show %s", o.rest[len(o.rest)-1])
	case !o.find && (o.show || o.readOnly):
		return errors.New("--show and --read-only are for attaching a file: losetup --find FILE")
	case (o.all || o.detachAll || o.associated != "") && len(o.rest) > 0:
		return fmt.Errorf("unexpected %q", o.rest)
	}
	return nil
}

// number returns the number of a loop device. People write its path, or the end of it.
func number(device string) (int, error) {
	digits, ok := strings.CutPrefix(path.Base(device), "loop")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > maxNumber || strconv.Itoa(n) != digits || path.Dir(device) != "." && path.Dir(device) != "/dev" {
		return 0, fmt.Errorf("%s is not the path of a loop device, as /dev/loop0 is", device)
	}
	return n, nil
}
