// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

// Package packages tests the packages for Linux and what the binaries contain.
package packages

import (
	"bufio"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/judged"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Names and paths of the package, as docs/packages.md promises them.
const (
	packageName    = "otelcol-tokenpulse" // also of the user
	unitFile       = "/usr/lib/systemd/system/otelcol-tokenpulse.service"
	packageConfig  = "/etc/otelcol-tokenpulse/config.yaml"
	packageOptions = "/etc/otelcol-tokenpulse/otelcol-tokenpulse.conf"
	packageState   = "/var/lib/otelcol-tokenpulse"
	enabledUnit    = "/etc/systemd/system/multi-user.target.wants/otelcol-tokenpulse.service"
)

// packageAddress is a loopback address on which nothing else listens, so that the default ports
// are free.
const packageAddress = "127.64.0.1"

// packageFile returns a package in a folder of dist.
func packageFile(t *testing.T, folder, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "dist", folder, pattern))
	require.NoError(t, err)
	require.Len(t, files, 1, "run make suite-packages, which builds dist/%s/%s", folder, pattern)
	return files[0]
}

func debIn(t *testing.T, folder string) string {
	t.Helper()
	return packageFile(t, folder, "*_"+runtime.GOARCH+".deb")
}

func rpmIn(t *testing.T, folder string) string {
	t.Helper()
	return packageFile(t, folder, map[string]string{"amd64": "*.x86_64.rpm", "arm64": "*.aarch64.rpm"}[runtime.GOARCH])
}

// output runs a program and returns what it writes.
func output(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	written, err := exec.Command(program, arguments...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", program, arguments, written)
	return string(written)
}

// installFirst installs the deb of dist/packages. The end of the test purges it.
func installFirst(t *testing.T) {
	t.Helper()
	dpkg := testenv.Program(t, "dpkg")
	if os.Geteuid() != 0 {
		testenv.Missing(t, "needs root")
	}
	require.NoFileExists(t, unitFile, "%s is installed on this machine; remove it first", packageName)
	t.Cleanup(func() { output(t, dpkg, "--purge", packageName) })
	install(t, "packages")
}

// install installs the deb in a folder of dist. If systemd runs, it has then started the service,
// whose place startUnit takes.
func install(t *testing.T, folder string) {
	t.Helper()
	output(t, "dpkg", "--install", debIn(t, folder))
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		output(t, "systemctl", "stop", packageName)
	}
}

// settings returns the settings of a file of systemd. The last one of a key counts.
func settings(t *testing.T, file string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	found := map[string]string{}
	for _, line := range strings.Split(string(content), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			found[key] = strings.Trim(value, `"`)
		}
	}
	return found
}

// startUnit runs ExecStart as systemd does: as the user of the unit, without privileges, and with
// no environment but that of the unit.
func startUnit(t *testing.T) *collector.Collector {
	t.Helper()
	unit := settings(t, unitFile)
	environment := settings(t, strings.TrimPrefix(unit["EnvironmentFile"], "-"))
	arguments := []string{
		"--reuid", unit["User"], "--regid", unit["Group"], "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
		"env", "--ignore-environment",
	}
	for name, value := range environment {
		arguments = append(arguments, name+"="+value)
	}
	arguments = append(arguments, strings.Fields(os.Expand(unit["ExecStart"], func(name string) string { return environment[name] }))...)
	c := &collector.Collector{HTTP: packageAddress + ":4319", GRPC: packageAddress + ":4320", Metrics: packageAddress + ":9464"}
	c.Process = collector.StartProcess(t, testenv.Program(t, "setpriv"), arguments...)
	c.WaitFor(t, "http://"+c.Metrics+"/")
	c.WaitUntilReady(t)
	return c
}

// A first user's path on Debian and Ubuntu. Half of each error budget is used: in 200 requests
// of a model, one of the two that may be bad is.
func TestPackage_ServesThePageKeepsItsStateAndLeavesNoTrace(t *testing.T) {
	before := filesOnThisMachine(t)
	installFirst(t)
	_, err := os.Lstat(enabledUnit)
	require.NoError(t, err, "the service is not enabled")
	appendTo(t, packageOptions, "TOKENPULSE_LISTEN_HOST="+packageAddress+"\n")
	appendTo(t, packageConfig, "# changed\n")

	half := map[judged.BudgetGauge]float64{}
	for _, model := range judged.Models {
		for _, slo := range []string{"ttft", "tpot"} {
			half[judged.BudgetGauge{Model: model, SLO: slo}] = 0.5
		}
	}
	requireState := func(c *collector.Collector) {
		t.Helper()
		budgets := judged.ScrapedGauges(t, c)
		maps.DeleteFunc(budgets, func(g judged.BudgetGauge, _ float64) bool { return g.Window != "" })
		require.InDeltaMapValues(t, half, budgets, 1e-9)
		requests, _ := collector.HistoryRequests(t, c)
		require.Equal(t, 400, requests)
	}

	c := startUnit(t)
	require.Contains(t, string(collector.Get(t, "http://"+c.Metrics+"/", "text/html")), "<title>")
	kinds := slices.Repeat([]judged.Kind{judged.Fine}, 400)
	kinds[0], kinds[1] = judged.NoToken, judged.NoToken // one of each model
	(&judged.Sender{Endpoint: c.HTTP}).SendAll(t, len(kinds), kinds...)
	requireState(c)
	c.Stop(t)

	c = startUnit(t)
	requireState(c)
	c.Stop(t)

	install(t, "upgrade")
	require.Equal(t, "99.0.0", output(t, "dpkg-query", "--show", "--showformat=${Version}", packageName))
	requireChanged := func() {
		t.Helper()
		require.Equal(t, packageAddress, settings(t, packageOptions)["TOKENPULSE_LISTEN_HOST"])
		content, err := os.ReadFile(packageConfig)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(content), "# changed\n"))
	}
	requireChanged()
	c = startUnit(t)
	requireState(c)
	c.Stop(t)

	output(t, "dpkg", "--remove", packageName)
	require.NoFileExists(t, "/usr/bin/otelcol-tokenpulse")
	require.NoFileExists(t, unitFile)
	requireChanged()
	install(t, "upgrade")
	c = startUnit(t)
	requireState(c)
	c.Stop(t)

	output(t, "dpkg", "--purge", packageName)
	var left []string
	for path := range filesOnThisMachine(t) {
		if !before[path] {
			left = append(left, path)
		}
	}
	require.Empty(t, left, "left after --purge")
	_, err = user.Lookup(packageName)
	require.Error(t, err)
	_, err = user.LookupGroup(packageName)
	require.Error(t, err)
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// filesOnThisMachine returns the paths that packages write to. Logs, caches and the backups of
// the files of users change with every package.
func filesOnThisMachine(t *testing.T) map[string]bool {
	t.Helper()
	changing := regexp.MustCompile(`^/var/(log|cache|tmp)/|^/var/lib/dpkg/.*-old$|^/etc/(passwd|group|shadow|gshadow)-$|^/etc/\.pwd\.lock$`)
	found := map[string]bool{}
	for _, root := range []string{"/etc", "/opt", "/srv", "/usr", "/var"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, _ error) error {
			if !changing.MatchString(path) {
				found[path] = true
			}
			return nil // another process may have removed the file
		}))
	}
	return found
}

// Mode and owner of each file in the package.
var packagedFiles = map[string]string{
	"/usr/bin/otelcol-tokenpulse": "-rwxr-xr-x root/root",
	"/usr/bin/tokenpulse":         "-rwxr-xr-x root/root",
	unitFile:                      "-rw-r--r-- root/root",
	filepath.Dir(packageConfig):   "drwxr-xr-x root/root",
	packageConfig:                 "-rw-r----- root/otelcol-tokenpulse",
	packageOptions:                "-rw-r----- root/otelcol-tokenpulse",
	packageState:                  "drwxr-x--- otelcol-tokenpulse/otelcol-tokenpulse",
	"/usr/share/bash-completion/completions/tokenpulse":    "-rw-r--r-- root/root",
	"/usr/share/zsh/vendor-completions/_tokenpulse":        "-rw-r--r-- root/root",
	"/usr/share/fish/vendor_completions.d/tokenpulse.fish": "-rw-r--r-- root/root",
	"/usr/share/doc/otelcol-tokenpulse":                    "drwxr-xr-x root/root",
	"/usr/share/doc/otelcol-tokenpulse/copyright":          "-rw-r--r-- root/root",
	"/usr/share/doc/otelcol-tokenpulse/notices.txt":        "-rw-r--r-- root/root",
}

func TestPackage_HasTheSameFilesAsDebAndRPM(t *testing.T) {
	files := func(listing string) map[string]string { // lines start with mode and owner, and end with the path
		found := map[string]string{}
		for lines := bufio.NewScanner(strings.NewReader(listing)); lines.Scan(); {
			words := strings.Fields(lines.Text())
			path := strings.TrimSuffix(strings.TrimPrefix(words[len(words)-1], "."), "/")
			if strings.HasPrefix(words[0], "-") || strings.Contains(path, packageName) { // debs also list the folders above
				found[path] = words[0] + " " + words[1]
			}
		}
		return found
	}
	expected := maps.Clone(packagedFiles)
	pages := t.TempDir()
	collector.Run(t, collector.Built(t, "tokenpulse"), "man", pages)
	written, err := os.ReadDir(pages)
	require.NoError(t, err)
	for _, page := range written {
		expected["/usr/share/man/man1/"+page.Name()+".gz"] = "-rw-r--r-- root/root"
	}
	require.Contains(t, expected, "/usr/share/man/man1/tokenpulse-report.1.gz")
	require.Equal(t, expected, files(output(t, testenv.Program(t, "dpkg-deb"), "--contents", debIn(t, "packages"))))
	format := `[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} %{FILENAMES}\n]`
	require.Equal(t, expected, files(output(t, testenv.Program(t, "rpm"), "--query", "--package", "--queryformat", format, rpmIn(t, "packages"))))
}

func TestPackage_RPMInstallsAndErasesInAnotherRoot(t *testing.T) {
	rpm := testenv.Program(t, "rpm")
	if os.Geteuid() != 0 {
		testenv.Missing(t, "needs root")
	}
	root := t.TempDir()
	output(t, rpm, "--root", root, "--nodeps", "--noscripts", "--install", rpmIn(t, "packages"))
	for path := range packagedFiles {
		_, err := os.Stat(filepath.Join(root, path))
		require.NoError(t, err)
	}
	appendTo(t, filepath.Join(root, packageConfig), "# changed\n")
	require.NoError(t, os.WriteFile(filepath.Join(root, packageState, "state"), nil, 0o600))

	output(t, rpm, "--root", root, "--nodeps", "--noscripts", "--upgrade", rpmIn(t, "upgrade"))
	changed, err := os.ReadFile(filepath.Join(root, packageConfig))
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(changed), "# changed\n"), "the upgrade replaced the config")

	output(t, rpm, "--root", root, "--nodeps", "--noscripts", "--erase", packageName)
	require.NoFileExists(t, filepath.Join(root, "usr/bin/otelcol-tokenpulse"))
	require.NoDirExists(t, filepath.Join(root, "usr/share/doc/otelcol-tokenpulse"))
	require.FileExists(t, filepath.Join(root, packageConfig+".rpmsave"))
	require.FileExists(t, filepath.Join(root, packageState, "state"))
}

// The exposure of a unit reaches from 0 to 10; systemd calls one up to 2 safe.
func TestPackage_UnitIsValidAndHardened(t *testing.T) {
	analyze := testenv.Program(t, "systemd-analyze")
	installFirst(t)
	require.NotContains(t, output(t, analyze, "verify", unitFile), packageName)
	require.Regexp(t, `Overall exposure level for otelcol-tokenpulse.service: \S+ OK`, output(t, analyze, "security", "--offline=yes", "--threshold=20", unitFile))
}
