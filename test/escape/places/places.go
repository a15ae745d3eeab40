// SPDX-License-Identifier: Apache-2.0

// Package places says where the prizes of test/escape are: prizes are secrets of the host, planted by
// test/escape/prize, which a program on a machine must not get. The package is small on purpose: the program links it.
package places

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"reflect"
	"regexp"
	"strconv"
)

// Map says where prizes are, as flags of the program. Missing prizes are zero, and attacks on them are "not here".
type Map struct {
	TokenHash string `flag:"token-sha256" usage:"SHA-256 of the token that every prize holds, in hex"`

	HostFile   string `flag:"host-file" usage:"path on the host of a file with the token that host root alone can read"`
	HostDir    string `flag:"host-dir" usage:"directory on the host in which an attack that got out makes a file"`
	HostDevice string `flag:"host-device" usage:"MAJOR:MINOR of the block device with the host's file; it is mounted, never written"`
	HostPID    int    `flag:"host-pid" usage:"process id on the host of a process with the token in its environment"`
	HostName   string `flag:"host-name" usage:"host name of the host"`

	HostKey       string `flag:"host-key" usage:"description of a key with the token in the user keyring of host root"`
	HostKeySerial int    `flag:"host-key-serial" usage:"serial number of that key"`
	HostSocket    string `flag:"host-socket" usage:"abstract unix socket in the host's network namespace that answers with the token"`
	HostMemory    int    `flag:"host-memory" usage:"key of a System V shared memory segment with the token in the host's IPC namespace"`
	HostVsock     int    `flag:"host-vsock" usage:"vsock port that a process of the host has bound"`
	HostUevents   bool   `flag:"host-uevents" usage:"uevents with the token are sent on the host all the time"`
	HostTicks     bool   `flag:"host-ticks" usage:"the host's file is opened on the host all the time"`
	HostBPF       bool   `flag:"host-bpf" usage:"a BPF map of the host holds the token"`

	CanaryDevice string `flag:"canary-device" usage:"MAJOR:MINOR of a loop device of the host that begins with the token; the only device that is ever written"`

	// HostUID is a user of the host who has used up all but HostLeft of what the kernel counts by user.
	HostUID     int `flag:"host-uid" usage:"user id on the host that has few inotify instances and keys left"`
	HostInotify int `flag:"host-inotify-left" usage:"how many inotify instances that user has left"`
	HostKeys    int `flag:"host-keys-left" usage:"how many keys that user has left"`

	Shared string `flag:"shared" usage:"read-only directory of the machine that belongs to the host's root (prizes in it: token, lock, socket, setuid)"`
	Volume string `flag:"volume" usage:"directory of the machine that is one of the host's, writable"`
	Disk   string `flag:"disk" usage:"directory on the machine's disk"`

	MostDisk      int64 `flag:"most-disk" usage:"bytes that the machine's disk must not have room for"`
	MostMemory    int64 `flag:"most-memory" usage:"bytes of memory that the machine must not have"`
	MostProcesses int   `flag:"most-processes" usage:"processes that the machine must not have at a time"`
}

// fields calls a function with the name, the usage and the value of each flag.
func (p *Map) fields(each func(name, usage string, value any)) {
	all := reflect.ValueOf(p).Elem()
	for i := range all.NumField() {
		tag := all.Type().Field(i).Tag
		each(tag.Get("flag"), tag.Get("usage"), all.Field(i).Addr().Interface())
	}
}

// Register makes a flag of each place.
func (p *Map) Register(flags *flag.FlagSet) {
	p.fields(func(name, usage string, value any) {
		switch v := value.(type) {
		case *string:
			flags.StringVar(v, name, *v, usage)
		case *int:
			flags.IntVar(v, name, *v, usage)
		case *int64:
			flags.Int64Var(v, name, *v, usage)
		case *bool:
			flags.BoolVar(v, name, *v, usage)
		}
	})
}

// Args are the flags that Register reads as this map.
func (p *Map) Args() []string {
	var args []string
	p.fields(func(name, _ string, value any) {
		switch v := value.(type) {
		case *string:
			if *v != "" {
				args = append(args, "-"+name+"="+*v)
			}
		case *int:
			if *v != 0 {
				args = append(args, "-"+name+"="+strconv.Itoa(*v))
			}
		case *int64:
			if *v != 0 {
				args = append(args, "-"+name+"="+strconv.FormatInt(*v, 10))
			}
		case *bool:
			if *v {
				args = append(args, "-"+name)
			}
		}
	})
	return args
}

// tokenPattern is how a token looks: 16 random bytes in hex.
var tokenPattern = regexp.MustCompile(`[0-9a-f]{32}`)

// Find looks for the token in what somebody read. It returns "" if the token is not there. The hash tells a prize from
// anything else that looks like one, and does not give the token away.
func (p *Map) Find(data []byte) string {
	for _, found := range tokenPattern.FindAll(data, -1) {
		if hash(found) == p.TokenHash {
			return string(found)
		}
	}
	return ""
}

func hash(token []byte) string {
	sum := sha256.Sum256(token)
	return hex.EncodeToString(sum[:])
}
