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
	return checkDuration("MaxSessionDuration", d, MinRoleSession, MaxRoleSession)
}

// CheckAssume checks how long a session of the role may be. A chained session is asked for with temporary credentials.
func CheckAssume(role Role, d time.Duration, chained bool) error {
	most := role.MaxSession
	if most < MinRoleSession || most > MaxRoleSession {
		most = DefaultRoleSession // a role from elsewhere: the least that any role grants
	}
	if chained && d > MaxChained {
		return &Invalid{"DurationSeconds", seconds(d), fmt.Sprintf("a session got with temporary credentials lasts %s at most", seconds(MaxChained))}
	}
	if d > most {
		return &Invalid{"DurationSeconds", seconds(d), fmt.Sprintf("the MaxSessionDuration of the role %s is %s", role.Name, seconds(most))}
	}
	return checkDuration("DurationSeconds", d, MinAssume, most)
}

// CheckSessionToken checks the duration of GetSessionToken, and is what root gets when it asks for more.
func CheckSessionToken(d time.Duration, root bool) (time.Duration, error) {
	if err := checkDuration("DurationSeconds", d, MinSessionToken, MaxSessionToken); err != nil {
		return 0, err
	}
	if root {
		return min(d, MaxRootSession), nil // IAM shortens it and says nothing
	}
	return d, nil
}

func checkDuration(field string, d, least, most time.Duration) error {
	if d < least || d > most {
		return &Invalid{field, seconds(d), fmt.Sprintf("it must be from %s to %s", seconds(least), seconds(most))}
	}
	if d%time.Second != 0 {
		return &Invalid{field, d.String(), "it must be whole seconds"}
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int64(d/time.Second)) }

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
