// SPDX-License-Identifier: Apache-2.0

// Package arn reads and writes Amazon Resource Names, and knows which of them identify a principal.
package arn

import (
	"errors"
	"fmt"
	"strings"
)

// ARN is a name of the form arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE. The zero ARN is none.
type ARN struct{ Partition, Service, Region, Account, Resource string }

// MaxSize is how long an ARN may be, in bytes.
const MaxSize = 2048

const (
	maxWord = 63 // bytes of a partition, service or region: they become labels of host names
	shown   = 80 // bytes of an ARN that errors repeat
)

// Parse reads an ARN. String writes accepted ones again byte for byte.
func Parse(s string) (ARN, error) {
	a, err := parse(s)
	if err != nil {
		return ARN{}, fmt.Errorf("%s is not an ARN: %w", quote(s), err)
	}
	return a, nil
}

func parse(s string) (ARN, error) {
	if len(s) > MaxSize {
		return ARN{}, fmt.Errorf("it has %d bytes, and %d are the most", len(s), MaxSize)
	}
	rest, ok := strings.CutPrefix(s, "arn:")
	if !ok {
		return ARN{}, errors.New("it must begin with arn: in lower case")
	}
	var fields [4]string
	for i := range fields {
		if fields[i], rest, ok = strings.Cut(rest, ":"); !ok {
			return ARN{}, errors.New("it must have the form arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE")
		}
	}
	a := ARN{Partition: fields[0], Service: fields[1], Region: fields[2], Account: fields[3], Resource: rest}
	switch {
	case a.Partition != "aws" && !strings.HasPrefix(a.Partition, "aws-"), !isWord(a.Partition):
		return ARN{}, fmt.Errorf("its partition is %s; partitions are aws, aws-cn, aws-us-gov and the like", quote(a.Partition))
	case !isWord(a.Service):
		return ARN{}, fmt.Errorf("its service is %s; use lower-case letters, digits and hyphens, as in iam", quote(a.Service))
	case a.Region != "" && !isWord(a.Region):
		return ARN{}, fmt.Errorf("its region is %s; use lower-case letters, digits and hyphens, or nothing", quote(a.Region))
	case a.Account != "" && a.Account != "aws" && !IsAccount(a.Account):
		return ARN{}, fmt.Errorf("its account is %s; an account has 12 digits", quote(a.Account))
	case a.Resource == "" || !all(a.Resource, isGraphic):
		return ARN{}, errors.New("its resource, the part after the account, must be visible ASCII characters without spaces")
	}
	return a, nil
}

// String writes the ARN; the zero ARN is "".
func (a ARN) String() string {
	if a.IsZero() {
		return ""
	}
	return "arn:" + a.Partition + ":" + a.Service + ":" + a.Region + ":" + a.Account + ":" + a.Resource
}

// IsZero reports whether there is no ARN.
func (a ARN) IsZero() bool { return a == ARN{} }

// IsAccount reports whether s is the number of an account: 12 digits.
func IsAccount(s string) bool { return len(s) == 12 && all(s, isDigit) }

// quote shows what was sent, but not all of it and on one line.
func quote(s string) string {
	if len(s) > shown {
		return fmt.Sprintf("%q…", s[:shown])
	}
	return fmt.Sprintf("%q", s)
}

func isWord(s string) bool {
	return s != "" && len(s) <= maxWord && all(s, func(c byte) bool { return c >= 'a' && c <= 'z' || isDigit(c) || c == '-' })
}

func isDigit(c byte) bool   { return c >= '0' && c <= '9' }
func isGraphic(c byte) bool { return c > ' ' && c < 0x7f }

func all(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if !is(s[i]) {
			return false
		}
	}
	return true
}
