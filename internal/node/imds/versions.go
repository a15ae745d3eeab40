// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"slices"
	"strings"
)

// latest is the version that is newest whenever it is asked for.
const latest = "latest"

// versions are those of the service before latest, as EC2 lists them (EC2's user guide, "Instance metadata versions").
// Tools such as cloud-init ask for one by its date. The tree here is the same in all of them.
var versions = []string{
	"1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01", "2009-04-04", "2011-01-01", "2011-05-01",
	"2012-01-12", "2014-02-25", "2014-11-05", "2015-10-20", "2016-04-19", "2016-06-30", "2016-09-02", "2018-03-28", "2018-08-17", "2018-09-24",
	"2019-10-01", "2020-10-27", "2021-01-03", "2021-03-23", "2021-07-15", "2022-09-24", "2024-04-11",
}

// newest is the path below latest that a path below any version stands for. A version that EC2 does not have is a path
// like any other.
func newest(path string) string {
	version, rest, deeper := strings.Cut(path, "/")
	if !slices.Contains(versions, version) {
		return path
	}
	if !deeper {
		return latest
	}
	return latest + "/" + rest
}

// versionList is what is at the root: a version on each line, without slashes.
func versionList() string { return strings.Join(append(slices.Clone(versions), latest), "\n") }
