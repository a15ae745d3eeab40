// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// chosen is a story that is to run, and why.
type chosen struct {
	story
	why string
}

// large has a file of each target of make whose build takes too long for a sample, or is asked for by nothing else there.
func large() map[string]string {
	return map[string]string{"karpenter": "bin/addons/karpenter.tar", "logs": "bin/victoria-logs", "cluster-api": "bin/cluster-api/clusterctl"}
}

// unbuilt names the stories that need a large build which was not made: no sample has them.
func unbuilt(stories []story, has func(path string) bool) []string {
	var names []string
	for _, s := range stories {
		lacks := func(target string) bool { file := large()[target]; return file != "" && !has(file) }
		if slices.ContainsFunc(strings.Fields(s.needs), lacks) {
			names = append(names, s.name)
		}
	}
	return names
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// parts is into how many parts the stories beyond the core and the change are cut. Each run of the gate begins with
// another one.
const parts = 6

// sample orders the stories that are no core stories: first those that the changed files touch, then the others, from a
// part of them that moves on by one a day.
func sample(stories []story, skip, changed []string, t times, commit time.Time) []chosen {
	var touched, rest []chosen
	for _, s := range stories {
		if s.soak || slices.Contains(skip, s.name) {
			continue
		}
		if why := touches(s, changed); why != "" {
			touched = append(touched, chosen{s, why})
		} else {
			rest = append(rest, chosen{s, ""})
		}
	}
	order(touched, t)
	day := int(commit.Unix() / int64((24 * time.Hour).Seconds()))
	for n := range parts {
		part := (day + n) % parts
		of := slices.Clone(rest[part*len(rest)/parts : (part+1)*len(rest)/parts])
		for k := range of {
			of[k].why = fmt.Sprintf("part %d of %d", part+1, parts)
		}
		order(of, t)
		touched = append(touched, of...)
	}
	return touched
}

// order puts stories that run alone before the others, and those that take long before short ones, so that the end is
// not one story that all wait for. Stories that need something built come last: a build takes the time of many stories.
func order(stories []chosen, t times) {
	slices.SortStableFunc(stories, func(a, b chosen) int {
		if (a.needs == "") != (b.needs == "") {
			return cmp.Compare(a.needs, b.needs)
		}
		if a.alone != b.alone {
			if a.alone {
				return -1
			}
			return 1
		}
		return cmp.Compare(t.of(b.name), t.of(a.name))
	})
}

// touches says which changed file is one that a story is about, or its own; "" if none is.
func touches(s story, changed []string) string {
	for _, file := range changed {
		if file == s.file {
			return file
		}
		if strings.HasSuffix(file, ".md") {
			continue
		}
		for _, about := range s.about {
			if strings.HasPrefix(file, about+"/") {
				return file
			}
		}
	}
	return ""
}
