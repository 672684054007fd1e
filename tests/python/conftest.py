from weirtest import store_url, weir_bin  # fixtures

__all__ = ["store_url", "weir_bin"]
