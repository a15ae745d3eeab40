// SPDX-License-Identifier: Apache-2.0

package imagearchive

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Name is the whole name of an image as people call it: web:dev is docker.io/library/web:dev, and web is
// docker.io/library/web:latest.
func Name(text string) (string, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return "", fmt.Errorf("invalid image name %q: %w", text, err)
	}
	if _, digested := named.(reference.Digested); digested {
		return "", fmt.Errorf("invalid image name %q: it must have a tag and no digest, as in web:dev", text)
	}
	return reference.TagNameOnly(named).String(), nil
}

// nameOf chooses the name of an image: what was asked for, if there is one image; else the archive's whole name; else
// its reference, if that is more than a tag.
func nameOf(whole, refName, wanted string, alone bool) (string, error) {
	tag := ""
	if whole == "" && strings.ContainsAny(refName, ":/") {
		whole = refName
	} else {
		tag = refName
	}
	switch {
	case wanted != "" && !alone:
		return "", errors.New("there are several images, and --name can name one only: leave it out")
	case wanted != "" && tag != "" && whole == "" && !strings.Contains(wanted[strings.LastIndex(wanted, "/")+1:], ":"):
		return Name(wanted + ":" + tag)
	case wanted != "":
		return Name(wanted)
	case whole != "":
		return Name(whole)
	case tag != "":
		return "", fmt.Errorf("it has the tag %q and no name: give it one by --name", tag)
	}
	return "", errors.New("it has no name: give it one by --name")
}
