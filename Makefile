# A short front for meson and ninja. Each target says what it does; each installs what it needs
# (Debian packages, when run as root or with sudo; else it prints the one command).

BUILD := build/plain
PREFIX ?= /usr/local
BENCHES := engine sets ckpt ckpt_scale data data_order data_scale data_pack remote storage

.PHONY: all demo test test-long asan tsan fuzz bench install format clean

all: ## build the library and the weir command
	@tools/setup build
	@tools/build plain

demo: all ## the tour: store, list, damage, detect, crash, recover
	@tools/demo $(BUILD)/src/cli/weir

test: ## everything that must always hold
	@tools/setup test
	@tools/test

test-long: ## the same with long sweeps (hours)
	@tools/setup test
	@WEIR_TEST_LONG=1 tools/test

asan: ## build and test with AddressSanitizer and UBSan only
	@tools/setup test
	@tools/test asan

tsan: ## build and test what is threaded with ThreadSanitizer only
	@tools/setup test
	@tools/test tsan

fuzz: ## fuzz every parser for FUZZ_SECONDS (default 60) each
	@tools/setup test
	@tools/fuzz $(FUZZ_SECONDS)

bench: ## measure against fio and peers in BENCH_DIR (default: build); writes bench/results
	@tools/setup bench
	@tools/build plain
	@for name in $(BENCHES); do \
		python3 bench/$$name.py --build $(BUILD) $(if $(BENCH_DIR),--dir $(BENCH_DIR)) || exit 1; \
	done

install: all ## install below PREFIX (default /usr/local)
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@meson install -C $(BUILD)

format: ## format the C files as .clang-format says
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean: ## remove everything built
	@rm -rf build
