// SPDX-License-Identifier: Apache-2.0

package efs_test

import (
	"maps"
	"strings"
	"testing"

	"muster.dev/muster/internal/storage/efs"
)

const (
	fileSystem  = "fs-0123456789abcdef0"
	accessPoint = "fsap-0123456789abcdef0"
)

func TestParseHandle(t *testing.T) {
	for text, want := range map[string]efs.Handle{
		fileSystem:                            {FileSystemID: fileSystem},
		fileSystem + ":/a/b":                  {FileSystemID: fileSystem, Path: "/a/b"},
		fileSystem + "::" + accessPoint:       {FileSystemID: fileSystem, AccessPointID: accessPoint},
		fileSystem + ":/a:" + accessPoint:     {FileSystemID: fileSystem, AccessPointID: accessPoint, Path: "/a"},
		fileSystem + ":/a/../b":               {},
		fileSystem + ":a":                     {},
		fileSystem + "::" + accessPoint + ":": {},
		fileSystem + "::fsap-1":               {},
		fileSystem + "::":                     {},
		"fs-1":                                {},
		"":                                    {},
		"../etc":                              {},
		fileSystem + ":/a\x00":                {},
		fileSystem + ":/a\xff":                {},
		fileSystem + ":/" + strings.Repeat("a", 200): {},
	} {
		got, err := efs.ParseHandle(text)
		if got != want || (err == nil) != (want.FileSystemID != "") {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
		if err == nil && got.String() != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}

func FuzzParseHandle(f *testing.F) {
	for _, seed := range []string{fileSystem, fileSystem + ":/a:" + accessPoint, "fs-", ":::"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := efs.ParseHandle(text)
		if err != nil {
			return
		}
		if again, err := efs.ParseHandle(h.String()); err != nil || again != h {
			t.Errorf("%q is read as %+v, which is written as %q and read as %+v, %v", text, h, h, again, err)
		}
		if strings.Contains("/"+h.Path+"/", "/../") {
			t.Errorf("%q leads upwards: %+v", text, h)
		}
	})
}

func TestParseParameters(t *testing.T) {
	good := map[string]string{"provisioningMode": "efs-ap", "fileSystemId": fileSystem, "directoryPerms": "700"}
	for name, test := range map[string]struct {
		change map[string]string
		wrong  string
		want   efs.Parameters
	}{
		"least":          {want: efs.Parameters{FileSystemID: fileSystem, Permissions: "700", GroupFirst: 50000, GroupLast: 7000000}},
		"owner":          {map[string]string{"uid": "0", "gid": "4294967295"}, "", efs.Parameters{FileSystemID: fileSystem, Permissions: "700", GID: 4294967295, OwnGroup: true, GroupFirst: 50000, GroupLast: 7000000}},
		"range, base":    {map[string]string{"gidRangeStart": "5", "gidRangeEnd": "6", "basePath": "a/b/"}, "", efs.Parameters{FileSystemID: fileSystem, Permissions: "700", GroupFirst: 5, GroupLast: 6, BasePath: "/a/b"}},
		"secrets":        {map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "x"}, "", efs.Parameters{FileSystemID: fileSystem, Permissions: "700", GroupFirst: 50000, GroupLast: 7000000}},
		"no file system": {map[string]string{"fileSystemId": ""}, "fileSystemId", efs.Parameters{}},
		"mode":           {map[string]string{"provisioningMode": "efs-fs"}, `supported values: "efs-ap"`, efs.Parameters{}},
		"permissions":    {map[string]string{"directoryPerms": "rwx"}, "octal", efs.Parameters{}},
		"unknown":        {map[string]string{"encryptInTransit": "true"}, "encryptInTransit", efs.Parameters{}},
		"half an owner":  {map[string]string{"uid": "1"}, "together", efs.Parameters{}},
		"range":          {map[string]string{"gidRangeStart": "7", "gidRangeEnd": "6"}, "gidRangeEnd", efs.Parameters{}},
		"uid":            {map[string]string{"uid": "4294967296", "gid": "1"}, "from 0 to 4294967295", efs.Parameters{}},
		"base":           {map[string]string{"basePath": "/a/../b"}, "basePath", efs.Parameters{}},
		"deep base":      {map[string]string{"basePath": "/a/b/c/d"}, "at most 3 names", efs.Parameters{}},
	} {
		given := maps.Clone(good)
		maps.Copy(given, test.change)
		got, err := efs.ParseParameters(given)
		if test.wrong == "" && (err != nil || got != test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: error is %v, want one about %s", name, err, test.wrong)
		}
	}
}

func FuzzParseParameters(f *testing.F) {
	f.Add("basePath", "/a", "gid", "1")
	f.Fuzz(func(t *testing.T, key, value, key2, value2 string) {
		given := map[string]string{"provisioningMode": "efs-ap", "fileSystemId": fileSystem, "directoryPerms": "700"}
		given[key], given[key2] = value, value2
		p, err := efs.ParseParameters(given)
		if err != nil {
			return
		}
		if err := efs.CheckPath(p.Directory("pvc-1")); err != nil {
			t.Error(err)
		}
		if g := p.Group(1 << 63); !p.OwnGroup && (g < p.GroupFirst || g > p.GroupLast) {
			t.Errorf("group %d of %+v", g, p)
		}
	})
}
