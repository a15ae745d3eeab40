// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/internal/node/configsource"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
)

// DropInDir is where documents are added to what the user data says, by bootstrap.sh for one. They come after it.
const DropInDir = "/etc/eks/nodeadm.d"

// told is the user data and the drop-in files of a machine, unparsed.
type told struct {
	userData []byte
	dropIns  []nodeconfig.Source
}

func (t told) equal(other told) bool {
	return bytes.Equal(t.userData, other.userData) && slices.EqualFunc(t.dropIns, other.dropIns, func(a, b nodeconfig.Source) bool {
		return a.Name == b.Name && bytes.Equal(a.Content, b.Content)
	})
}

// ask asks what the machine is told now. That there is no user data is an answer.
func (a *agent) ask(ctx context.Context) (told, error) {
	userData, err := a.metadata.UserData(ctx)
	if err != nil && !errors.Is(err, imds.ErrNotFound) {
		return told{}, err
	}
	dropIns, err := readDropIns(ctx, a.config.DropInDir)
	return told{userData: userData, dropIns: dropIns}, err
}

// RefusedBootstrap is a file in the directory of drop-ins that says why bootstrap.sh refused its arguments when it was
// called last.
const RefusedBootstrap = "40-bootstrap.refused"

// refusedBootstrap is what it says, as a failure of the user data: the script that called bootstrap.sh may have gone
// on.
func refusedBootstrap(dir string) []string {
	file, err := os.Open(filepath.Join(dir, RefusedBootstrap))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	why := "its reason cannot be read"
	if err == nil {
		defer func() { _ = file.Close() }()
		const most = 4 << 10
		if raw, err := io.ReadAll(io.LimitReader(file, most)); err == nil {
			why = strings.Join(strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' }), "; ")
		}
	}
	return []string{"bootstrap.sh was refused: " + why}
}

// readDropIns reads the documents of a directory, if there is one.
func readDropIns(ctx context.Context, dir string) ([]nodeconfig.Source, error) {
	if !exists(dir) {
		return nil, nil
	}
	found, err := configsource.Load(ctx, []string{dir}, configsource.Readers{})
	return found.Documents, err
}

func scriptsOf(parts []userdata.Part) []userdata.Part {
	return slices.DeleteFunc(slices.Clone(parts), func(part userdata.Part) bool { return part.MediaType != userdata.TypeShellScript })
}
