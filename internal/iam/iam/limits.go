// SPDX-License-Identifier: Apache-2.0

package iam

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CheckMaxSession checks a role's MaxSessionDuration.
func CheckMaxSession(d time.Duration) error {
	return checkDuration("maxSessionDuration", d, MinRoleSession, MaxRoleSession)
}

// TooLong says that a session would last longer than it may, in AWS's words, by which people find what to do.
type TooLong string

func (e TooLong) Error() string { return "The requested DurationSeconds exceeds " + string(e) + "." }

// OutOfRange says that a number is smaller or larger than a parameter takes, as the front of every AWS service does.
type OutOfRange struct {
	Field       string // the parameter with a small first letter
	Saw         int64
	Least, Most int64
}

func (e *OutOfRange) Error() string {
	bound := fmt.Sprintf("greater than or equal to %d", e.Least)
	if e.Saw > e.Most {
		bound = fmt.Sprintf("less than or equal to %d", e.Most)
	}
	return fmt.Sprintf("1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value %s", e.Saw, e.Field, bound)
}

// TooManyItems says that a request has more tags, or keys of tags, than one request may have, as the front of every AWS
// service does. It is the parameter with a small first letter.
type TooManyItems string

func (e TooManyItems) Error() string {
	return fmt.Sprintf("1 validation error detected: Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", string(e), MaxTags)
}

// CheckAssume checks how long a session of the role may be. A chained session is asked for with temporary credentials,
// a user's own from GetSessionToken among them.
func CheckAssume(role Role, d time.Duration, chained bool) error {
	most := role.MaxSession
	if most < MinRoleSession || most > MaxRoleSession {
		most = DefaultRoleSession // a role from elsewhere: the least that any role grants
	}
	if err := checkDuration("durationSeconds", d, MinAssume, MaxRoleSession); err != nil {
		return err
	}
	if chained && d > MaxChained {
		return TooLong("the 1 hour session limit for roles assumed by role chaining")
	}
	if d > most {
		return TooLong("the MaxSessionDuration set for this role")
	}
	return nil
}

// CheckSessionToken checks the duration of GetSessionToken, and is what root gets when it asks for more.
func CheckSessionToken(d time.Duration, root bool) (time.Duration, error) {
	if err := checkDuration("durationSeconds", d, MinSessionToken, MaxSessionToken); err != nil {
		return 0, err
	}
	if root {
		return min(d, MaxRootSession), nil // IAM shortens it and says nothing
	}
	return d, nil
}

func checkDuration(field string, d, least, most time.Duration) error {
	if d%time.Second != 0 {
		return &Invalid{field, d.String(), "it must be whole seconds"}
	}
	if d < least || d > most {
		return &OutOfRange{field, int64(d / time.Second), int64(least / time.Second), int64(most / time.Second)}
	}
	return nil
}

// CheckNewKey checks that the user, with so many keys of any status, may have another.
func CheckNewKey(user User, keys int) error {
	if keys >= MaxKeysPerUser {
		return &Limit{"access keys of the user " + user.Name, MaxKeysPerUser, "delete one first, an inactive one counts too"}
	}
	return nil
}

// CheckNewVersion checks that the policy may have another version.
func (p Policy) CheckNewVersion() error {
	if len(p.Versions) >= MaxVersions {
		return &Limit{"versions of the policy " + p.Name, MaxVersions, "delete one that is not in force first"}
	}
	return nil
}

// NextVersion is the id of the policy's next version.
func (p Policy) NextVersion() string {
	last := 0
	for _, v := range p.Versions {
		if n, err := strconv.Atoi(strings.TrimPrefix(v.ID, "v")); err == nil {
			last = max(last, n)
		}
	}
	return "v" + strconv.Itoa(last+1)
}

// CheckAttach checks that one more managed policy may be attached.
func (g Grants) CheckAttach(policyARN string) error {
	if slices.Contains(g.Attached, policyARN) {
		return nil // attaching twice changes nothing
	}
	if len(g.Attached) >= MaxAttached {
		return &Limit{"managed policies attached to one user or role", MaxAttached, "detach one, or put the statements into fewer policies"}
	}
	return nil
}

// Parse reads a status as a caller writes it.
func (s KeyStatus) Parse() (KeyStatus, error) {
	if s != Active && s != Inactive {
		return "", &Invalid{"Status", quoted(string(s)), "it must be Active or Inactive"}
	}
	return s, nil
}

// Usable reports whether requests may be signed with the key.
func (k AccessKey) Usable() bool {
	return k.Status == Active && !k.Secret.Empty() && IsID(KeyPrefix, k.ID) && IsID(UserPrefix, k.UserID)
}
